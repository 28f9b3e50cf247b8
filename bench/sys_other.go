//go:build !linux

package main

import (
	"errors"
	"os"
	"time"
)

// errElsewhere is the error of figures that this system does not give.
var errElsewhere = errors.New("measured on Linux only")

// fdatasync makes the file's data durable. This system has no call for the data alone.
func fdatasync(f *os.File) error { return f.Sync() }

// residentMemory returns the memory of this process. Only Linux tells it; here it is an error.
func residentMemory(string) (int64, error) { return 0, errElsewhere }

// residentMemoryOf returns a figure about the memory of another process. Only Linux tells it; here it is an error.
func residentMemoryOf(string, string) (int64, error) { return 0, errElsewhere }

// chill would drop a file from the system's cache. Only Linux can do this.
func chill(string) (float64, error) { return 0, errElsewhere }

// blocks returns the size of a file. On Linux it is the space that the file takes on the disk.
func blocks(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// processorTime returns the processor time of this process: 0, since this system does not tell it.
func processorTime() time.Duration { return 0 }

// kernel returns the name of the kernel, for the head of a report; empty on this system.
func kernel() string { return "" }

// cpuModel returns the name of the processor, for the head of a report. This system does not tell it.
func cpuModel() string { return "unknown CPU" }
