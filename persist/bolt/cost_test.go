package bolt_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// cycles lets writers begin and finish n records each, and returns what the
// journal counted meanwhile.
func cycles(t testing.TB, j *bolt.Journal, writers, n int) bolt.Stats {
	t.Helper()
	before := j.Stats()
	answer := &persist.Answer{Status: 201, Body: []byte(`{"id":"ch_1"}`)}
	recs := make([]persist.Record, writers*n)
	for i := range recs {
		recs[i] = record(fmt.Sprintf("idemp:order:u%d:o%d-%d", i%97, i, before.Changes))
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for _, r := range recs[w*n:][:n] {
				r, created, err := j.Begin(context.Background(), r)
				if err != nil || !created {
					t.Errorf("Begin: created %t, error %v", created, err)
					return
				}
				r.State, r.Finished, r.Answer = persist.StateConfirmed, r.Created, answer
				if err := j.Finish(context.Background(), r); err != nil {
					t.Errorf("Finish: %v", err)
				}
			}
		})
	}
	wg.Wait()
	flush(t, j)
	after := j.Stats()
	return bolt.Stats{Commits: after.Commits - before.Commits, Syncs: after.Syncs - before.Syncs, Changes: after.Changes - before.Changes, Bytes: after.Bytes - before.Bytes}
}

// TestCost guards what a begin and a finish cost when 64 callers do nothing
// else. It counts allocations, so it is not parallel.
// Quiet, it counts 19 allocations, and 21 with the race detector; beside other work commits are smaller, and cost more each.
func TestCost(t *testing.T) {
	const writers, each, syncsMax, allocsMax, bytesMax = 64, 60, 0.08, 24, 4096
	var counted atomic.Int64
	j := openWith(t, newPath(t), bolt.Options{Sync: func(f *os.File) error {
		counted.Add(1)
		time.Sleep(2 * time.Millisecond) // as a disk takes: commits then have the same size on every machine
		return f.Sync()
	}})
	cycles(t, j, writers, 10)
	counted.Store(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := cycles(t, j, writers, each)
	runtime.ReadMemStats(&after)
	ops := float64(writers * each)
	if s.Changes != 2*writers*each || s.Syncs != counted.Load() || s.Commits != s.Syncs {
		t.Errorf("for %v records it counted %+v, and synced %d times", ops, s, counted.Load())
	}
	if syncs := float64(counted.Load()) / ops; syncs > syncsMax {
		t.Errorf("%.3f syncs per begin and finish, want at most %v", syncs, syncsMax)
	}
	if allocs := float64(after.Mallocs-before.Mallocs) / ops; allocs > allocsMax {
		t.Errorf("%.1f allocations per begin and finish, want at most %v", allocs, allocsMax)
	}
	if b := float64(s.Bytes) / ops; b > bytesMax {
		t.Errorf("%.0f bytes written per begin and finish, want at most %v", b, bytesMax)
	}
	t.Logf("per begin and finish: %.3f syncs, %.1f allocations, %.0f bytes written",
		float64(counted.Load())/ops, float64(after.Mallocs-before.Mallocs)/ops, float64(s.Bytes)/ops)
}

// TestLargeBodyOnce: a large body is copied once on its way to the file, by
// bbolt, into its pages. It counts bytes, so it is not parallel.
func TestLargeBodyOnce(t *testing.T) {
	const size = 10 << 20
	j := open(t, newPath(t))
	body := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for i := range 3 {
		r := record(fmt.Sprint("large-", i))
		r.Body = body
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin(t, j, r)
		runtime.ReadMemStats(&after)
		if n := float64(after.TotalAlloc-before.TotalAlloc) / size; n > 1.2 {
			t.Errorf("Begin of large record %d allocates %.2f times its body, want at most 1.2", i, n)
		}
	}
}

// TestNoTimer: a lone Begin waits for one commit and for no timer. In a bubble
// time stands still but for timers that are waited for.
func TestNoTimer(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		j := open(t, path)
		start, before := time.Now(), j.Stats()
		for i := range 5 {
			r := begin(t, j, record(fmt.Sprint(i)))
			r.Attempts++
			if _, err := j.Update(context.Background(), r); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("5 Begins and Updates, one after the other, waited %v for a timer", d)
		}
		if n := j.Stats().Commits - before.Commits; n != 10 {
			t.Errorf("10 operations, one after the other, took %d commits", n)
		}
		closeIt(t, j)
	})
}

// TestFinishIsFlushed: a Finish on an idle journal is durable 10 ms later.
func TestFinishIsFlushed(t *testing.T) {
	t.Parallel()
	path, copied := newPath(t), filepath.Join(t.TempDir(), "copy.db")
	synctest.Test(t, func(t *testing.T) {
		j := open(t, path)
		for i := range 3 {
			r := begin(t, j, record(fmt.Sprint(i)))
			before := j.Stats()
			finish(t, j, r)
			if got, err := j.Get(context.Background(), r.ID); err != nil || got.State != persist.StateConfirmed {
				t.Errorf("a Finish is not visible at once: %v, %v", got.State, err)
			}
			if n := j.Stats().Commits - before.Commits; n != 0 {
				t.Errorf("a Finish waited for %d commits", n)
			}
			time.Sleep(9 * time.Millisecond)
			synctest.Wait()
			if n := j.Stats().Commits - before.Commits; n != 1 {
				t.Errorf("9 ms after a Finish there were %d commits, want 1", n)
			}
			// What a crash would leave now.
			writeFile(t, copied, readFile(t, path))
			k := open(t, copied)
			if got, err := k.Get(context.Background(), r.ID); err != nil || got.State != persist.StateConfirmed {
				t.Errorf("9 ms after a Finish a crash leaves %v, %v", got.State, err)
			}
			closeIt(t, k)
		}
		closeIt(t, j)
	})
}

// TestFinishIsBounded: what nobody waits for is bounded, however slow the disk.
func TestFinishIsBounded(t *testing.T) {
	t.Parallel()
	const n = 9000 // more than two batches may hold
	var slow atomic.Bool
	gate := make(chan struct{})
	j := openWith(t, newPath(t), bolt.Options{Sync: func(f *os.File) error {
		if slow.Load() {
			<-gate
		}
		return nil
	}})
	recs := make([]persist.Record, n)
	var wg sync.WaitGroup
	for w := range 60 {
		wg.Go(func() {
			for i := w; i < n; i += 60 {
				recs[i] = begin(t, j, record(fmt.Sprint(i)))
			}
		})
	}
	wg.Wait()
	slow.Store(true)
	var finished atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, r := range recs {
			if err := j.Finish(context.Background(), confirmed(r)); err != nil {
				t.Error(err)
			}
			finished.Add(1)
		}
	}()
	select {
	case <-done:
		t.Errorf("%d Finishes were queued without a commit", n)
	case gate <- struct{}{}:
	}
	close(gate)
	<-done
}
