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

// runSelf runs a role in a process of its own, and reads the JSON that it
// prints.
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

func printJSON(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

// watchMemory samples the anonymous memory of this process until stopped, and
// returns its peak. What came and went between two samples is not seen; they are
// half a millisecond apart.
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

// watchMemoryOf samples the anonymous memory of another process every 10 ms until it ends. stop waits for that end and
// returns the peak, or 0 where it cannot be measured.
func watchMemoryOf(pid int) (stop func() int64) {
	var peak int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			now, err := residentMemoryOf(strconv.Itoa(pid), "RssAnon")
			if err != nil { // it has ended, or this system does not tell
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
