// Package run_test holds that Run and Resume reach whatever is due, and give each origin its turn.
package run_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestRunWakes: at once for what stands, after each Enqueue, and at the moment at
// which something falls due, whoever left it behind.
func TestRunWakes(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{
			{Status: 201},
			{Status: 503, Header: "Retry-After: 90"}, {Status: 201},
			{Status: 503, Header: "Retry-After: 20"}, {Status: 201},
		}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Retry.MaxRetryAfter = time.Second }))
		clienttest.Enqueue(t, c, 1)
		start := time.Now()
		stop := clienttest.Run(t, c)
		time.Sleep(5 * time.Second)
		if err := c.Enqueue(clienttest.Post(t, "{}"), "second"); err != nil { // sent at 5, due at 95
			t.Fatal(err)
		}
		time.Sleep(211 * time.Second)
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "third"); err == nil { // sent at 216, due at 236
			t.Fatal("no error")
		}
		time.Sleep(700 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, 5, 95, 216, 236}
		for i, s := range w.Sends {
			if got := s.At.Sub(start); i >= len(want) || got != want[i]*time.Second {
				t.Errorf("send %d, of %s, at %v; want %v", i, s.Key, got, want)
			}
		}
		if w.Count() != len(want) {
			t.Errorf("%d sends, want %d", w.Count(), len(want))
		}
	})
}

// TestRunEnds with its context: nothing is started any more, and what is on the
// wire is answered first.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 10 * time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers, cfg.OriginWorkers = 2, 2 }))
		clienttest.Enqueue(t, c, 5)
		stop := clienttest.Run(t, c)
		start := time.Now()
		if err := stop(); err != nil || time.Since(start) != 10*time.Second || w.Count() != 2 {
			t.Errorf("%v after %v and %d sends, want what two workers had on the wire", err, time.Since(start), w.Count())
		}
		left := 0
		for rec := range c.Unfinished(t.Context()) {
			if left++; rec.MaybeSent {
				t.Errorf("%s was cut off", rec.Key)
			}
		}
		if left != 3 {
			t.Errorf("%d left, want 3", left)
		}
		for range 20 { // an ended context starts nothing, however the dice fall
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := c.Run(ended); err != nil || w.Count() != 2 {
				t.Fatalf("with a context that has ended: %v, %d sends", err, w.Count())
			}
		}
	})
}

// TestRunGoesOn past operations that fail, and past those that nobody can send.
func TestRunGoesOn(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 301}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		guarded := clienttest.Post(t, "{}")
		guarded.Header.Set("Authorization", "Bearer x")
		_, _ = c.DoKey(guarded, "guarded")
		time.Sleep(time.Hour)
		clienttest.Enqueue(t, c, 2)
		stop := clienttest.Run(t, c)
		time.Sleep(time.Hour)
		if err := stop(); !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("%v, want ErrConfig for the one that lacks its credentials", err)
		}
		states := map[persist.State]int{}
		for _, key := range []oncehttp.Key{"k0", "k1", "guarded"} {
			states[clienttest.Lookup(t, c, key).State]++
		}
		if states[persist.StateHeld] != 1 || states[persist.StateConfirmed] != 1 || states[persist.StatePending] != 1 || w.Count() != 3 {
			t.Errorf("%v after %d sends", states, w.Count())
		}
	})
}

// TestRunSweeps hourly.
func TestRunSweeps(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.KeepAnswer = 30 * time.Minute }))
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		stop := clienttest.Run(t, c)
		time.Sleep(59 * time.Minute)
		if clienttest.Lookup(t, c, "k").Swept {
			t.Error("swept before the hour")
		}
		time.Sleep(3 * time.Minute)
		if !clienttest.Lookup(t, c, "k").Swept {
			t.Error("not swept after the hour")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestRunOfTwo: two clients that run on one journal send each operation once.
func TestRunOfTwo(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
		var stops []func() error
		var clients []*oncehttp.Client
		for range 3 {
			c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 2 }))
			clients, stops = append(clients, c), append(stops, clienttest.Run(t, c))
		}
		clienttest.Enqueue(t, clients[0], 20)
		time.Sleep(10 * time.Minute)
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if w.Count() != 20 || len(w.Keys()) != 20 {
			t.Errorf("%d sends under %d keys", w.Count(), len(w.Keys()))
		}
	})
}

// TestRunBesideEverything: callers, passes, settling and sweeps at once, for the
// race detector; no operation is sent after it was confirmed or given up.
func TestRunBesideEverything(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Retry = oncehttp.Policy{MaxAttempts: 2, MaxDelay: time.Second} }))
		stop := clienttest.Run(t, c)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 10 {
					key := oncehttp.NewScope("x").Key(string(rune('a' + (i+n)%5)))
					switch n % 4 {
					case 0:
						_ = c.Enqueue(clienttest.Post(t, "{}"), key)
					case 1:
						_, _ = c.DoKey(clienttest.Post(t, "{}"), key)
					case 2:
						for range c.Resume(t.Context()) {
							break
						}
					case 3:
						_ = c.Settle(t.Context(), key, oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 200, Header: http.Header{"X": {"y"}}}})
						_, _ = c.Sweep(t.Context())
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for rec := range c.Unfinished(t.Context()) {
			t.Errorf("%s is left %v", rec.Key, rec.State)
		}
	})
}
