package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fdatasync makes the file's data durable.
func fdatasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// residentMemory returns a line of /proc/self/status in bytes. RssAnon is the resident
// anonymous memory, without the pages of mapped files.
func residentMemory(line string) (int64, error) { return residentMemoryOf("self", line) }

// residentMemoryOf returns a line of /proc/PROCESS/status, such as RssAnon, in bytes. It fails once the process has ended.
func residentMemoryOf(process, line string) (int64, error) {
	text, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(text, []byte("\n"+line+":"))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("/proc/%s/status has no %s", process, line)
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10, err
}

// chill drops a file from the page cache, and returns the share of it that stayed, 0 to 1.
func chill(path string) (left float64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, err
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Munmap(data) }()
	page := os.Getpagesize()
	resident := make([]byte, (len(data)+page-1)/page)
	if err := mincore(data, resident); err != nil {
		return 0, err
	}
	n := 0
	for _, r := range resident {
		n += int(r & 1)
	}
	return float64(n) / float64(len(resident)), nil
}

// processorTime returns the processor time of this process, in user and kernel mode; 0 if it is unknown.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// blocks returns the space of a file on the disk in bytes; holes do not count.
func blocks(path string) (int64, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return 0, err
	}
	return s.Blocks * 512, nil
}

// kernel returns a space and the kernel's release; "" if it is unknown.
func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return " " + unix.ByteSliceToString(u.Release[:])
}

// cpuModel returns the processor's name.
func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}

// mincore sets the lowest bit of resident for each page of the mapping data that is in memory. x/sys has no wrapper.
func mincore(data, resident []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)),
		uintptr(unsafe.Pointer(&resident[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
