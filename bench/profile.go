package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"time"
)

// profileContender writes profiles of a contender under load into the folder of -profile:
// processor time, allocations, waits for locks. Without the flag it does nothing. No
// measurement runs at the time.
func profileContender(b *bench, l *contender, workers int, url string, next *atomic.Int64) error {
	if b.profile == "" {
		return nil
	}
	if err := os.MkdirAll(b.profile, 0o755); err != nil {
		return err
	}
	prefix := filepath.Join(b.profile, b.report.last().Name+"-")
	cpu, err := os.Create(prefix + "cpu.pprof")
	if err != nil {
		return err
	}
	defer cpu.Close()
	runtime.SetMutexProfileFraction(1)
	defer runtime.SetMutexProfileFraction(0)
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	_, err = l.drive(b, workers, 4*time.Second, url, next)
	pprof.StopCPUProfile()
	if err != nil {
		return err
	}
	for _, name := range []string{"allocs", "mutex"} {
		if err := writeProfile(prefix+name+".pprof", name); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "profiles of %s with %d callers are in %s\n", l.name, workers, b.profile)
	return nil
}

// writeProfile writes the profile of this name to a new file.
func writeProfile(path, name string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return pprof.Lookup(name).WriteTo(f, 0)
}
