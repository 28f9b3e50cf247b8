//go:build !linux

package main

import (
	"errors"
	"os"
	"time"
)

// errElsewhere is the error of figures that this system does not give.
var errElsewhere = errors.New("measured on Linux only")

func fdatasync(f *os.File) error { return f.Sync() }

func residentMemory(string) (int64, error) { return 0, errElsewhere }

func residentMemoryOf(string, string) (int64, error) { return 0, errElsewhere }

func chill(string) (float64, error) { return 0, errElsewhere }

func blocks(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func processorTime() time.Duration { return 0 }

func kernel() string { return "" }

func cpuModel() string { return "unknown CPU" }
