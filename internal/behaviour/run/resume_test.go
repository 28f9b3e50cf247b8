package run_test

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
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestResumeBesideDo: a pass leaves alone what a Do of the same client drives, so
// that the Do can record its answer.
func TestResumeBesideDo(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Delay: time.Second}, {Status: 201, Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		clienttest.Enqueue(t, c, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.DoKey(clienttest.Post(t, `{"n":0}`), "k0"); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "fresh"); err == nil {
				return
			}
		})
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			if got := clienttest.Resume(t, c); len(got) != 0 {
				t.Errorf("resumed %v", got)
			}
		}
		wg.Wait()
		for _, key := range []oncehttp.Key{"k0", "fresh"} {
			if rec := clienttest.Lookup(t, c, key); rec.State != persist.StateConfirmed {
				t.Errorf("%s is %v, want its answer recorded", key, rec.State)
			}
		}
	})
}

// TestDoBesideResume: a Do that comes while a pass has claimed its operation, or
// drives it, goes on.
func TestDoBesideResume(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 1 }))
		clienttest.Enqueue(t, c, 6)
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
				if _, err := c.DoKey(clienttest.Post(t, fmt.Sprintf(`{"n":%d}`, i)), oncehttp.Key(fmt.Sprintf("k%d", i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if w.Count() != 6 || len(w.Keys()) != 6 {
			t.Errorf("%d sends under %v", w.Count(), w.Keys())
		}
	})
}

// TestTwoProcesses on one journal with leases: each operation is driven by one,
// and none is left over when one breaks off.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
		workers := func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 2 }
		a, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), workers))
		b, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), workers))
		clienttest.Enqueue(t, a, 12)
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
		if w.Count() != 12 || len(w.Keys()) != 12 {
			t.Errorf("%d sends under %d keys, want 12 of each", w.Count(), len(w.Keys()))
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
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Retry = oncehttp.Policy{MaxAttempts: 1, MinDelay: 1, MaxDelay: time.Millisecond}
			cfg.ResumeWorkers = 1
		}))
		clienttest.Enqueue(t, c, 3)
		seen := map[oncehttp.Key]int{}
		for _, err := range c.Resume(t.Context()) {
			var e *oncehttp.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			seen[e.Key]++
			time.Sleep(time.Second)
			if err := c.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprintf("later%d", len(seen)))); err != nil {
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
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}, {Status: 201, Delay: 10 * time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 3 }))
		clienttest.Enqueue(t, c, 10)
		start := time.Now()
		for range c.Resume(t.Context()) {
			synctest.Wait() // until each worker has one on the wire
			break
		}
		sends := w.Count()
		if took := time.Since(start); took != 10*time.Second || sends != 4 {
			t.Errorf("after %v and %d sends, want 10s for what three workers had on the wire", took, sends)
		}
		done := 0
		for key := range w.Keys() {
			if rec := clienttest.Lookup(t, c, oncehttp.Key(key)); rec.State == persist.StateConfirmed {
				done++
			}
		}
		time.Sleep(time.Minute)
		if done != sends || w.Count() != sends {
			t.Errorf("%d of %d recorded; %d sends a minute later", done, sends, w.Count())
		}
		clienttest.Idle(t, c, j)
	})
}

// TestResumeBreakIsBounded by the attempt timeout, also where a wait or an
// attempt would go on.
func TestResumeBreakIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}, {Status: 503, Header: "Retry-After: 50"}, {Status: 201, Delay: time.Hour}}}
		c, _ := clienttest.New(t, w, nil)
		clienttest.Enqueue(t, c, 3)
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
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 301}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(ctx context.Context, _ persist.Record) (oncehttp.Resolution, error) {
				<-ctx.Done()
				return oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, ctx.Err()
			}
		}))
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "held")
		clienttest.Enqueue(t, c, 1)
		start := time.Now()
		for range c.Resume(t.Context()) {
			break
		}
		if took := time.Since(start); took != 30*time.Second || clienttest.Lookup(t, c, "held").State != persist.StateHeld {
			t.Errorf("the break took %v, want the attempt timeout; it is %v", took, clienttest.Lookup(t, c, "held").State)
		}
	})
}

// TestResumeLeavesWhatMovedOn: between its listing and its turn an operation may
// have been driven by somebody else.
func TestResumeLeavesWhatMovedOn(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}, {Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers, cfg.Retry.MaxAttempts = 1, 1 }))
		clienttest.Enqueue(t, c, 4)
		var wg sync.WaitGroup
		wg.Go(func() {
			if got := clienttest.Resume(t, c); len(got) != 2 || got["k0"].Err != nil || got["k3"].Err != nil {
				t.Errorf("yielded %v, want k0 and k3", got)
			}
		})
		synctest.Wait()
		if _, err := c.DoKey(clienttest.Post(t, `{"n":1}`), "k1"); err == nil {
			t.Error("k1 was to be lost")
		}
		if _, err := c.DoKey(clienttest.Post(t, `{"n":2}`), "k2"); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if k1 := clienttest.Lookup(t, c, "k1"); w.Keys()["k1"] != 1 || w.Keys()["k2"] != 1 || k1.LeaseOwner != "" || k1.State != persist.StatePending {
			t.Errorf("sends %v; k1 is %v, leased by %q", w.Keys(), k1.State, k1.LeaseOwner)
		}
	})
}

// TestResumeContext: its end cuts the attempts on the wire, each is recorded and
// yielded, and the pass says why it ended.
func TestResumeContext(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Hour}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 2; cfg.Retry.AttemptTimeout = 2 * time.Hour }))
		clienttest.Enqueue(t, c, 4)
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
				clienttest.ExactlyOne(t, err)
			default:
				ended++
			}
		}
		if time.Since(start) != time.Minute || yielded != 2 || ended != 1 || w.Count() != 2 {
			t.Errorf("after %v: %d operations, %d ends, %d sends", time.Since(start), yielded, ended, w.Count())
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
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		req := clienttest.Post(t, "{}")
		req.Header.Set("Authorization", "Bearer x")
		_, _ = c.DoKey(req, "guarded")
		clienttest.Enqueue(t, c, 2)
		time.Sleep(time.Minute)
		got := clienttest.Resume(t, c)
		err := got["guarded"].Err
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || len(got) != 3 || got["k0"].Err != nil || got["k1"].Err != nil {
			t.Errorf("%v", got)
		}
		if rec := clienttest.Lookup(t, c, "guarded"); rec.State != persist.StatePending || rec.LeaseOwner != "" || w.Keys()["guarded"] != 1 {
			t.Errorf("record %v, leased by %q, %d sends", rec.State, rec.LeaseOwner, w.Keys()["guarded"])
		}
		authorized, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(req *http.Request) error { req.Header.Set("Authorization", "Bearer new"); return nil }
		}))
		time.Sleep(time.Nanosecond) // what a pass could not run is due again after the moment at which it began
		if got := clienttest.Resume(t, authorized); got["guarded"].Err != nil || w.Sends[len(w.Sends)-1].Header.Get("Authorization") != "Bearer new" {
			t.Errorf("with Authorize: %v", got)
		}
	})
}

// TestNextAttempt: a pass leaves alone what is not due, and Do does not ask.
func TestNextAttempt(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 600"}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		var e *oncehttp.Error
		if !errors.As(err, &e) || !e.NextAttempt.Equal(time.Now().Add(600*time.Second)) || !clienttest.Lookup(t, c, "k").NextAttempt.Equal(e.NextAttempt) {
			t.Fatalf("%v", err)
		}
		time.Sleep(600*time.Second - 1)
		if got := clienttest.Resume(t, c); len(got) != 0 || w.Count() != 1 {
			t.Errorf("a moment early: %v", got)
		}
		time.Sleep(time.Nanosecond)
		if got := clienttest.Resume(t, c); got["k"].Err != nil || got["k"].Result.Answer.Status != 201 || w.Count() != 2 {
			t.Errorf("when due: %v", got)
		}
	})
}
