package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"time"
)

// profileDo writes profiles of a lane under load: where its time goes, what it
// allocates, and what it waits for. Nothing is timed while they are taken.
func profileDo(b *bench, l *lane, url string, next *atomic.Int64) error {
	if err := os.MkdirAll(b.profile, 0o755); err != nil {
		return err
	}
	cpu, err := os.Create(filepath.Join(b.profile, "cpu.pprof"))
	if err != nil {
		return err
	}
	defer cpu.Close()
	runtime.SetMutexProfileFraction(1)
	defer runtime.SetMutexProfileFraction(0)
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	_, err = l.drive(b, 64, 4*time.Second, url, next)
	pprof.StopCPUProfile()
	if err != nil {
		return err
	}
	for _, name := range []string{"allocs", "mutex"} {
		if err := writeProfile(filepath.Join(b.profile, name+".pprof"), name); err != nil {
			return err
		}
	}
	b.note("profiles of %s at 64 workers are in %s", l.name, b.profile)
	return nil
}

func writeProfile(path, name string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return pprof.Lookup(name).WriteTo(f, 0)
}
