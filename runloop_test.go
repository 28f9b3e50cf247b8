package oncehttp_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// running is a Run in the background; stop ends it and gives its error.
func running(t *testing.T, c *oncehttp.Client) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- c.Run(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-result
	}
}

// TestRunWakes: at once for what stands, after each Enqueue, and at the moment at
// which something falls due, whoever left it behind.
func TestRunWakes(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{
			{status: 201},
			{status: 503, header: "Retry-After: 90"}, {status: 201},
			{status: 503, header: "Retry-After: 20"}, {status: 201},
		}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.Retry.MaxRetryAfter = time.Second }))
		enqueue(t, c, 1)
		start := time.Now()
		stop := running(t, c)
		time.Sleep(5 * time.Second)
		if err := c.Enqueue(post(t, "{}"), "second"); err != nil { // sent at 5, due at 95
			t.Fatal(err)
		}
		time.Sleep(211 * time.Second)
		if _, err := c.DoKey(post(t, "{}"), "third"); err == nil { // sent at 216, due at 236
			t.Fatal("no error")
		}
		time.Sleep(700 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, 5, 95, 216, 236}
		for i, s := range w.sends {
			if got := s.at.Sub(start); i >= len(want) || got != want[i]*time.Second {
				t.Errorf("send %d, of %s, at %v; want %v", i, s.key, got, want)
			}
		}
		if w.count() != len(want) {
			t.Errorf("%d sends, want %d", w.count(), len(want))
		}
	})
}

// TestRunEnds with its context: nothing is started any more, and what is on the
// wire is answered first.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201, delay: 10 * time.Second}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers, cfg.OriginWorkers = 2, 2 }))
		enqueue(t, c, 5)
		stop := running(t, c)
		start := time.Now()
		if err := stop(); err != nil || time.Since(start) != 10*time.Second || w.count() != 2 {
			t.Errorf("%v after %v and %d sends, want what two workers had on the wire", err, time.Since(start), w.count())
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
			if err := c.Run(ended); err != nil || w.count() != 2 {
				t.Fatalf("with a context that has ended: %v, %d sends", err, w.count())
			}
		}
	})
}

// TestRunGoesOn past operations that fail, and past those that nobody can send.
func TestRunGoesOn(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{err: errLost}, {status: 301}, {status: 201}}}
		c, _ := newClient(t, w, on(j, oneAttempt))
		guarded := post(t, "{}")
		guarded.Header.Set("Authorization", "Bearer x")
		_, _ = c.DoKey(guarded, "guarded")
		time.Sleep(time.Hour)
		enqueue(t, c, 2)
		stop := running(t, c)
		time.Sleep(time.Hour)
		if err := stop(); !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("%v, want ErrConfig for the one that lacks its credentials", err)
		}
		states := map[persist.State]int{}
		for _, key := range []oncehttp.Key{"k0", "k1", "guarded"} {
			states[lookup(t, c, key).State]++
		}
		if states[persist.StateHeld] != 1 || states[persist.StateConfirmed] != 1 || states[persist.StatePending] != 1 || w.count() != 3 {
			t.Errorf("%v after %d sends", states, w.count())
		}
	})
}

// TestRunSweeps hourly.
func TestRunSweeps(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.KeepAnswer = 30 * time.Minute }))
		if _, err := c.DoKey(post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		stop := running(t, c)
		time.Sleep(59 * time.Minute)
		if lookup(t, c, "k").Swept {
			t.Error("swept before the hour")
		}
		time.Sleep(3 * time.Minute)
		if !lookup(t, c, "k").Swept {
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
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201, delay: time.Second}}}
		var stops []func() error
		var clients []*oncehttp.Client
		for range 3 {
			c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 2 }))
			clients, stops = append(clients, c), append(stops, running(t, c))
		}
		enqueue(t, clients[0], 20)
		time.Sleep(10 * time.Minute)
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if w.count() != 20 || len(w.keys()) != 20 {
			t.Errorf("%d sends under %d keys", w.count(), len(w.keys()))
		}
	})
}

// TestRunBesideEverything: callers, passes, settling and sweeps at once, for the
// race detector; no operation is sent after it was confirmed or given up.
func TestRunBesideEverything(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{err: errLost}, {status: 503}, {status: 201}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.Retry = oncehttp.Policy{MaxAttempts: 2, MaxDelay: time.Second} }))
		stop := running(t, c)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 10 {
					key := oncehttp.NewScope("x").Key(string(rune('a' + (i+n)%5)))
					switch n % 4 {
					case 0:
						_ = c.Enqueue(post(t, "{}"), key)
					case 1:
						_, _ = c.DoKey(post(t, "{}"), key)
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
