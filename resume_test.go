package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// enqueue records n operations, "k0" and so on.
func enqueue(t *testing.T, c *oncehttp.Client, n int) {
	t.Helper()
	for i := range n {
		if err := c.Enqueue(post(t, fmt.Sprintf(`{"n":%d}`, i)), oncehttp.Key(fmt.Sprintf("k%d", i))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestResumeBesideDo: a pass leaves alone what a Do of the same client drives, so
// that the Do can record its answer.
func TestResumeBesideDo(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 503, delay: time.Second}, {status: 201, delay: time.Second}}}
		c, _ := newClient(t, w, on(j))
		enqueue(t, c, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.DoKey(post(t, `{"n":0}`), "k0"); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := c.DoKey(post(t, "{}"), "fresh"); err == nil {
				return
			}
		})
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			if got := resume(t, c); len(got) != 0 {
				t.Errorf("resumed %v", got)
			}
		}
		wg.Wait()
		for _, key := range []oncehttp.Key{"k0", "fresh"} {
			if rec := lookup(t, c, key); rec.State != persist.StateConfirmed {
				t.Errorf("%s is %v, want its answer recorded", key, rec.State)
			}
		}
	})
}

// TestDoBesideResume: a Do that comes while a pass has claimed its operation, or
// drives it, goes on.
func TestDoBesideResume(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201, delay: time.Second}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 1 }))
		enqueue(t, c, 6)
		var wg sync.WaitGroup
		wg.Go(func() {
			for r, err := range c.Resume(t.Context()) {
				if err != nil {
					t.Errorf("%s: %v", r.Key, err)
				}
			}
		})
		time.Sleep(500 * time.Millisecond)
		for i := range 6 {
			wg.Go(func() {
				if _, err := c.DoKey(post(t, fmt.Sprintf(`{"n":%d}`, i)), oncehttp.Key(fmt.Sprintf("k%d", i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if w.count() != 6 || len(w.keys()) != 6 {
			t.Errorf("%d sends under %v", w.count(), w.keys())
		}
	})
}

// TestTwoProcesses on one journal with leases: each operation is driven by one,
// and none is left over when one breaks off.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		w := &wire{replies: []reply{{status: 201, delay: time.Second}}}
		workers := func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 2 }
		a, _ := newClient(t, w, on(newLeasing(j), workers))
		b, _ := newClient(t, w, on(newLeasing(j), workers))
		enqueue(t, a, 12)
		for range a.Resume(t.Context()) {
			break
		}
		var wg sync.WaitGroup
		for _, c := range []*oncehttp.Client{a, b} {
			wg.Go(func() {
				for r, err := range c.Resume(t.Context()) {
					if err != nil {
						t.Errorf("%s: %v", r.Key, err)
					}
				}
			})
		}
		wg.Wait()
		if w.count() != 12 || len(w.keys()) != 12 {
			t.Errorf("%d sends under %d keys, want 12 of each", w.count(), len(w.keys()))
		}
		for rec := range a.Unfinished(t.Context()) {
			t.Errorf("%s is left %v, leased by %q", rec.Key, rec.State, rec.LeaseOwner)
		}
	})
}

// TestResumeIsOnePass over what was due at its start: what is enqueued meanwhile,
// or falls due again, waits for the next.
func TestResumeIsOnePass(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 503}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) {
			cfg.Retry = oncehttp.Policy{MaxAttempts: 1, MinDelay: 1, MaxDelay: time.Millisecond}
			cfg.ResumeWorkers = 1
		}))
		enqueue(t, c, 3)
		seen := map[oncehttp.Key]int{}
		for _, err := range c.Resume(t.Context()) {
			var e *oncehttp.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			seen[e.Key]++
			time.Sleep(time.Second)
			if err := c.Enqueue(post(t, "{}"), oncehttp.Key(fmt.Sprintf("later%d", len(seen)))); err != nil {
				t.Fatal(err)
			}
			if len(seen) > 10 {
				t.Fatal("the pass does not end")
			}
		}
		if len(seen) != 3 || seen["k0"] != 1 || seen["k1"] != 1 || seen["k2"] != 1 {
			t.Errorf("yielded %v, want each of three once", seen)
		}
	})
}

// TestResumeBreak: nothing more is started; what is on the wire is waited for and
// recorded.
func TestResumeBreak(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201}, {status: 201, delay: 10 * time.Second}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 3 }))
		enqueue(t, c, 10)
		start := time.Now()
		for range c.Resume(t.Context()) {
			synctest.Wait() // until each worker has one on the wire
			break
		}
		sends := w.count()
		if took := time.Since(start); took != 10*time.Second || sends != 4 {
			t.Errorf("after %v and %d sends, want 10s for what three workers had on the wire", took, sends)
		}
		done := 0
		for key := range w.keys() {
			if rec := lookup(t, c, oncehttp.Key(key)); rec.State == persist.StateConfirmed {
				done++
			}
		}
		time.Sleep(time.Minute)
		if done != sends || w.count() != sends || oncehttp.Running(c) != 0 {
			t.Errorf("%d of %d recorded; %d sends a minute later; %d under way", done, sends, w.count(), oncehttp.Running(c))
		}
	})
}

// TestResumeBreakIsBounded by the attempt timeout, also where a wait or an
// attempt would go on.
func TestResumeBreakIsBounded(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201}, {status: 503, header: "Retry-After: 50"}, {status: 201, delay: time.Hour}}}
		c, _ := newClient(t, w, nil)
		enqueue(t, c, 3)
		start := time.Now()
		for range c.Resume(t.Context()) {
			synctest.Wait() // until the others are on the wire and waiting
			break
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("the break took %v", took)
		}
		for rec := range c.Unfinished(t.Context()) {
			if rec.State != persist.StatePending || !rec.MaybeSent || rec.Sends != 1 {
				t.Errorf("%s: %v, maybe sent %v, %d sends", rec.Key, rec.State, rec.MaybeSent, rec.Sends)
			}
		}
	})
}

// TestBreakWhileReconciling: it, too, is waited for so long and no longer.
func TestBreakWhileReconciling(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 301}, {status: 201}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(ctx context.Context, _ persist.Record) (oncehttp.Resolution, error) {
				<-ctx.Done()
				return oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, ctx.Err()
			}
		}))
		_, _ = c.DoKey(post(t, "{}"), "held")
		enqueue(t, c, 1)
		start := time.Now()
		for range c.Resume(t.Context()) {
			break
		}
		if took := time.Since(start); took != 30*time.Second || lookup(t, c, "held").State != persist.StateHeld {
			t.Errorf("the break took %v, want the attempt timeout; it is %v", took, lookup(t, c, "held").State)
		}
	})
}

// TestResumeLeavesWhatMovedOn: between its listing and its turn an operation may
// have been driven by somebody else.
func TestResumeLeavesWhatMovedOn(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201, delay: time.Second}, {err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers, cfg.Retry.MaxAttempts = 1, 1 }))
		enqueue(t, c, 4)
		var wg sync.WaitGroup
		wg.Go(func() {
			if got := resume(t, c); len(got) != 2 || got["k0"].err != nil || got["k3"].err != nil {
				t.Errorf("yielded %v, want k0 and k3", got)
			}
		})
		synctest.Wait()
		if _, err := c.DoKey(post(t, `{"n":1}`), "k1"); err == nil {
			t.Error("k1 was to be lost")
		}
		if _, err := c.DoKey(post(t, `{"n":2}`), "k2"); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if k1 := lookup(t, c, "k1"); w.keys()["k1"] != 1 || w.keys()["k2"] != 1 || k1.LeaseOwner != "" || k1.State != persist.StatePending {
			t.Errorf("sends %v; k1 is %v, leased by %q", w.keys(), k1.State, k1.LeaseOwner)
		}
	})
}

// TestResumeContext: its end cuts the attempts on the wire, each is recorded and
// yielded, and the pass says why it ended.
func TestResumeContext(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201, delay: time.Hour}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 2; cfg.Retry.AttemptTimeout = 2 * time.Hour }))
		enqueue(t, c, 4)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		var yielded, ended int
		for _, err := range c.Resume(ctx) {
			var e *oncehttp.Error
			switch {
			case !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("%v", err)
			case errors.As(err, &e):
				yielded++
				exactlyOne(t, err)
			default:
				ended++
			}
		}
		if time.Since(start) != time.Minute || yielded != 2 || ended != 1 || w.count() != 2 {
			t.Errorf("after %v: %d operations, %d ends, %d sends", time.Since(start), yielded, ended, w.count())
		}
		sent := 0
		for rec := range c.Unfinished(t.Context()) {
			if rec.MaybeSent {
				sent++
			}
			if rec.LeaseOwner != "" {
				t.Errorf("%s is still leased", rec.Key)
			}
		}
		if sent != 2 {
			t.Errorf("%d are maybe sent, want 2", sent)
		}
	})
}

// TestResumeCredentials: one operation whose credentials nobody can give is an
// error of its own, and the pass goes on.
func TestResumeCredentials(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, on(j, oneAttempt))
		req := post(t, "{}")
		req.Header.Set("Authorization", "Bearer x")
		_, _ = c.DoKey(req, "guarded")
		enqueue(t, c, 2)
		time.Sleep(time.Minute)
		got := resume(t, c)
		err := got["guarded"].err
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || len(got) != 3 || got["k0"].err != nil || got["k1"].err != nil {
			t.Errorf("%v", got)
		}
		if rec := lookup(t, c, "guarded"); rec.State != persist.StatePending || rec.LeaseOwner != "" || w.keys()["guarded"] != 1 {
			t.Errorf("record %v, leased by %q, %d sends", rec.State, rec.LeaseOwner, w.keys()["guarded"])
		}
		authorized, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(req *http.Request) error { req.Header.Set("Authorization", "Bearer new"); return nil }
		}))
		time.Sleep(time.Nanosecond) // what a pass could not run is due again after the moment at which it began
		if got := resume(t, authorized); got["guarded"].err != nil || w.sends[len(w.sends)-1].header.Get("Authorization") != "Bearer new" {
			t.Errorf("with Authorize: %v", got)
		}
	})
}

// TestNextAttempt: a pass leaves alone what is not due, and Do does not ask.
func TestNextAttempt(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 503, header: "Retry-After: 600"}, {status: 201}}}
		c, _ := newClient(t, w, on(j))
		_, err := c.DoKey(post(t, "{}"), "k")
		var e *oncehttp.Error
		if !errors.As(err, &e) || !e.NextAttempt.Equal(time.Now().Add(600*time.Second)) || !lookup(t, c, "k").NextAttempt.Equal(e.NextAttempt) {
			t.Fatalf("%v", err)
		}
		time.Sleep(600*time.Second - 1)
		if got := resume(t, c); len(got) != 0 || w.count() != 1 {
			t.Errorf("a moment early: %v", got)
		}
		time.Sleep(time.Nanosecond)
		if got := resume(t, c); got["k"].err != nil || got["k"].result.Answer.Status != 201 || w.count() != 2 {
			t.Errorf("when due: %v", got)
		}
	})
}
