//go:build !linux

package main

import (
	"errors"
	"os"
)

var errElsewhere = errors.New("measured on Linux only")

func fdatasync(f *os.File) error { return f.Sync() }

func residentMemory(string) (int64, error) { return 0, errElsewhere }

func chill(string) (float64, error) { return 0, errElsewhere }

func blocks(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func kernel() string { return "" }

func cpuModel() string { return "unknown CPU" }
