package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// runSelf runs a role (args[0]) of this program in a new process, and decodes
// the JSON that it prints into result, a pointer.
func runSelf(ctx context.Context, result any, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return json.Unmarshal(out, result)
}

// printJSON prints the result of a role for runSelf.
func printJSON(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

// watchMemory samples the anonymous memory (that of no file) of this process every half millisecond. The caller must call stop once; it returns the peak in
// bytes. Peaks between two samples are missed.
func watchMemory() (stop func() (int64, error)) {
	var peak int64
	var failed error
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			now, err := residentMemory("RssAnon")
			peak, failed = max(peak, now), err
			select {
			case <-done:
				return
			case <-time.After(500 * time.Microsecond):
			}
		}
	})
	return func() (int64, error) {
		close(done)
		wg.Wait()
		return peak, failed
	}
}

// watchMemoryOf samples the anonymous memory (that of no file) of another process every 10 ms until it ends. stop waits for that end and returns
// the peak in bytes; 0: it cannot be measured.
func watchMemoryOf(pid int) (stop func() int64) {
	var peak int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			now, err := residentMemoryOf(strconv.Itoa(pid), "RssAnon")
			if err != nil { // it has ended, or this system has no such figure
				return
			}
			peak = max(peak, now)
			time.Sleep(10 * time.Millisecond)
		}
	})
	return func() int64 {
		wg.Wait()
		return peak
	}
}
