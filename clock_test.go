package oncehttp_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// worker is a client of another process on the journal, whose own clock is off.
func worker(t *testing.T, j *memory.Journal, w *wire, off time.Duration, changes ...func(*oncehttp.Config)) *oncehttp.Client {
	t.Helper()
	c, _ := newClient(t, w, on(newLeasing(j), changes...))
	oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(off) })
	return c
}

// offs are clocks that differ by ten minutes, both ways.
var offs = [][2]time.Duration{{0, 10 * time.Minute}, {10 * time.Minute, 0}, {0, -10 * time.Minute}, {-5 * time.Minute, 5 * time.Minute}}

// TestClocksOfWorkers: workers whose clocks differ by ten minutes agree on when an operation was first sent, when it is
// due, and who has it; none holds it because of its own clock.
func TestClocksOfWorkers(t *testing.T) {
	t.Parallel()
	for _, off := range offs {
		bubble(t, func(t *testing.T) {
			j := memory.New()
			w := &wire{replies: []reply{{status: 503, delay: time.Second}, {status: 201, delay: time.Second}}}
			one, two := worker(t, j, w, off[0], oneAttempt), worker(t, j, w, off[1], oneAttempt)
			start := time.Now()
			if err := one.Enqueue(post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			done := make(chan map[oncehttp.Key]resumed)
			go func() { done <- resume(t, one) }()
			time.Sleep(time.Second / 2)
			if got := resume(t, two); len(got) != 0 {
				t.Errorf("clocks %v: while one has it, two resumed %v", off, got)
			}
			<-done
			rec := lookup(t, two, "k")
			if !rec.FirstSent.Equal(start) || !rec.Created.Equal(start) || !rec.SendBefore.Equal(start.Add(24*time.Hour)) || rec.State != persist.StatePending {
				t.Errorf("clocks %v: begun at %v, first sent at %v, state %v; it is %v", off, rec.Created, rec.FirstSent, rec.State, start)
			}
			wait := time.Until(rec.NextAttempt)
			if wait <= 0 || wait > time.Minute {
				t.Fatalf("clocks %v: due in %v", off, wait)
			}
			time.Sleep(wait - 1)
			if got := resume(t, two); len(got) != 0 {
				t.Errorf("clocks %v: before it was due, two resumed %v", off, got)
			}
			time.Sleep(time.Nanosecond)
			if got := resume(t, two); got["k"].err != nil || w.count() != 2 {
				t.Errorf("clocks %v: when it was due, two resumed %v, after %d sends", off, got, w.count())
			}
			if rec := lookup(t, one, "k"); rec.State != persist.StateConfirmed || !rec.Finished.Equal(time.Now()) {
				t.Errorf("clocks %v: it is %v since %v", off, rec.State, rec.Finished)
			}
		})
	}
}

// TestClockIsTold: a worker whose clock is off says so once, and one whose clock is right does not.
func TestClockIsTold(t *testing.T) {
	t.Parallel()
	for off, want := range map[time.Duration]int{0: 0, 50 * time.Second: 0, 10 * time.Minute: 1, -10 * time.Minute: 1} {
		bubble(t, func(t *testing.T) {
			var out bytes.Buffer
			c := worker(t, memory.New(), &wire{replies: []reply{{status: 201}}}, off, func(cfg *oncehttp.Config) {
				cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
			})
			for _, key := range []oncehttp.Key{"a", "b", "c"} {
				if _, err := c.DoKey(post(t, "{}"), key); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Minute)
			}
			if n := strings.Count(out.String(), "clock is off by 10m0s"); n != want || want == 0 && out.Len() > 0 {
				t.Errorf("a clock that is off by %v was told %d times, want %d: %s", off, n, want, &out)
			}
		})
	}
}

// TestClockIsSetMeanwhile: where the own clock is set between two operations, the second is stamped by the journal's.
func TestClockIsSetMeanwhile(t *testing.T) {
	t.Parallel()
	for _, set := range []time.Duration{time.Hour, -time.Hour} {
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: 201}}}
			c, j := newClient(t, w, nil)
			off := time.Duration(0)
			oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(off) }) // the monotonic clock goes on
			if _, err := c.DoKey(post(t, "{}"), "before"); err != nil {
				t.Fatal(err)
			}
			off = set
			if _, err := c.DoKey(post(t, "{}"), "after"); err != nil {
				t.Fatal(err)
			}
			rec, err := j.Get(context.Background(), persist.ID{Account: persist.Account(""), Key: "after"})
			if err != nil || !rec.FirstSent.Equal(time.Now()) {
				t.Errorf("set by %v: first sent at %v, error %v; it is %v", set, rec.FirstSent, err, time.Now())
			}
		})
	}
}
