package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestRunIsHeard: whatever a pass cannot go on with is an event, also without a
// logger.
func TestRunIsHeard(t *testing.T) {
	t.Parallel()
	unknownProfile := profile.Draft07()
	unknownProfile.Name = "gone"
	rows := map[string]struct {
		before func(t *testing.T, j persist.Journal) // leaves an operation "k" of an earlier process
		change func(*oncehttp.Config)
		is     error
	}{
		"no Authorize": {func(t *testing.T, j persist.Journal) {
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
			req := clienttest.Post(t, "{}")
			req.Header.Set("Authorization", "Bearer x")
			_, _ = c.DoKey(req, "k")
		}, func(*oncehttp.Config) {}, oncehttp.ErrConfig},
		"no such profile": {func(t *testing.T, j persist.Journal) {
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = unknownProfile }))
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		}, func(*oncehttp.Config) {}, oncehttp.ErrConfig},
		"Reconcile cannot tell": {func(t *testing.T, j persist.Journal) {
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 301}}}, clienttest.On(j))
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		}, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				return oncehttp.Resolution{}, nil
			}
		}, oncehttp.ErrHeld},
		"Reconcile fails": {func(t *testing.T, j persist.Journal) {
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 301}}}, clienttest.On(j))
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		}, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				return oncehttp.Resolution{}, journaltest.ErrDisk
			}
		}, journaltest.ErrDisk},
		"the journal fails": {func(t *testing.T, j persist.Journal) {
			c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(j))
			if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			j.(*journaltest.Faulty).OnUpdate = journaltest.Fails(journaltest.ErrDisk)
		}, func(*oncehttp.Config) {}, journaltest.ErrDisk},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := &journaltest.Faulty{Journal: memory.New()}
				r.before(t, j)
				time.Sleep(time.Hour)
				var heard clienttest.Events
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, r.change, func(cfg *oncehttp.Config) { cfg.Observe = heard.Observe }))
				stop := clienttest.Run(t, c)
				time.Sleep(time.Second)
				lacks := r.is == oncehttp.ErrConfig
				if err := stop(); errors.Is(err, oncehttp.ErrConfig) != lacks || err != nil && !lacks {
					t.Errorf("Run: %v", err)
				}
				if lacks {
					told := heard.Of(oncehttp.EventUnserved)
					if len(told) != 1 || told[0].Count != 1 || told[0].Origin != "https://api.example.com:443" || !errors.Is(told[0].Err, r.is) || len(heard.Of(oncehttp.EventBlocked)) > 0 {
						t.Errorf("told %+v, want one event of one operation", told)
					}
					return
				}
				blocked := heard.Of(oncehttp.EventBlocked)
				if len(blocked) == 0 || w.Count() != 0 {
					t.Fatalf("%d events, %d sends; want to hear of it", len(blocked), w.Count())
				}
				e := blocked[0]
				if e.Key != "k" || !errors.Is(e.Err, r.is) || e.Method != "POST" || e.Path != "/payments" || e.Origin != "https://api.example.com:443" || !e.Resumed {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// TestEventsNameTheAccount: where headers part one key into several operations, the events of each say which one it is, so that
// it can be looked up; those of one that cannot go on, too.
func TestEventsNameTheAccount(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		seen := &clienttest.Events{}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Profile, cfg.Account, cfg.Observe = profile.StripeV1(), "shop", seen.Observe
		}))
		for _, account := range []string{"acct_1", "acct_2"} {
			req := clienttest.Post(t, "{}")
			req.Header.Set("Stripe-Account", account)
			if _, err := c.DoKey(req, "k"); err != nil {
				t.Fatal(err)
			}
			for _, e := range seen.All {
				rec, err := c.Lookup(t.Context(), e.Key, oncehttp.OfAccount(e.Account))
				if err != nil || rec.ScopedAccount() != persist.Account("shop", [2]string{"Stripe-Account", account}) {
					t.Errorf("%s of %q: %v", e.Kind, e.Account, err)
				}
			}
			if len(seen.All) < 4 {
				t.Errorf("%d events", len(seen.All))
			}
			seen.All = nil
		}
		req := clienttest.Post(t, "{}")
		req.Header.Set("Stripe-Account", "acct_3")
		req.Header.Set("Authorization", "Bearer x")
		lost, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
			cfg.Profile, cfg.Account = profile.StripeV1(), "shop"
		}))
		_, _ = lost.DoKey(req, "k")
		time.Sleep(time.Hour)
		clienttest.Resume(t, c) // without credentials
		blocked := seen.Of(oncehttp.EventBlocked)
		if len(blocked) != 1 {
			t.Fatalf("blocked: %+v", blocked)
		}
		rec, err := c.Lookup(t.Context(), "k", oncehttp.OfAccount(blocked[0].Account))
		if err != nil || rec.ScopedAccount() != persist.Account("shop", [2]string{"Stripe-Account", "acct_3"}) {
			t.Errorf("blocked: %+v, of %q, %v", blocked, rec.ScopedAccount(), err)
		}
	})
}

// TestSweepIsHeard: as is what concerns the journal as a whole.
func TestSweepIsHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard clienttest.Events
		c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(&journaltest.Faulty{Journal: memory.New(), OnSweep: journaltest.Fails(journaltest.ErrDisk)}, func(cfg *oncehttp.Config) { cfg.Observe = heard.Observe }))
		stop := clienttest.Run(t, c)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if blocked := heard.Of(oncehttp.EventBlocked); len(blocked) != 1 || blocked[0].Key != "" || !errors.Is(blocked[0].Err, journaltest.ErrDisk) {
			t.Errorf("%+v", blocked)
		}
	})
}

// TestJournalAnswersAreHeard: so that a hit rate can be measured.
func TestJournalAnswersAreHeard(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		var heard clienttest.Events
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Header: "Content-Type: application/problem+json"}}}, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Observe = heard.Observe }))
		for range 3 {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
		}
		recorded := heard.Of(oncehttp.EventRecorded)
		if len(recorded) != 2 || len(heard.Of(oncehttp.EventBegun)) != 1 || len(heard.Of(oncehttp.EventFinished)) != 1 {
			t.Fatalf("%+v", heard.All)
		}
		for _, e := range recorded {
			if e.Key != "k" || e.Status != 402 || e.Outcome != oncehttp.OutcomeRefused || e.Err != nil || !e.Resumed || e.Attempt != 0 {
				t.Errorf("%+v", e)
			}
		}
	})
}

// TestReconciledIsHeard: an operation that Config.Reconcile ended is finished.
func TestReconciledIsHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard clienttest.Events
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 301}}}, func(cfg *oncehttp.Config) {
			cfg.Observe = heard.Observe
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				return oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 201}}, nil
			}
		})
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		clienttest.Resume(t, c)
		finished := heard.Of(oncehttp.EventFinished)
		if len(finished) != 2 || finished[1].Outcome != oncehttp.OutcomeConfirmed || finished[1].Status != 201 || finished[1].Err != nil {
			t.Errorf("%+v", finished)
		}
	})
}

// TestRunSparesDeadOrigins: however many operations wait for a server that takes no
// connections, it is tried ever more seldom, and all go on when it is back.
func TestRunSparesDeadOrigins(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 20} {
		journaltest.Each(t, func(t *testing.T, j persist.Journal) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}}}
			c, _ := clienttest.New(t, w, clienttest.On(j))
			clienttest.Enqueue(t, c, n)
			stop := clienttest.Run(t, c)
			time.Sleep(2 * time.Hour)
			// 8 at once, then after 0.5 s, 1 s, 2 s … up to 15 min.
			if most := 8 + 11 + 8; w.Count() > most {
				t.Errorf("%d operations: %d sends in two hours, want at most %d", n, w.Count(), most)
			}
			before := w.Count()
			time.Sleep(2 * time.Hour)
			if got := w.Count() - before; got < 7 || got > 9 {
				t.Errorf("%d operations: %d sends in the next two hours, want one in 15 minutes", n, got)
			}
			w.Then(wiretest.Reply{Status: 201})
			time.Sleep(15*time.Minute + time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
			for rec := range c.Unfinished(t.Context()) {
				t.Errorf("%s is left %v, due at %v, now %v", rec.Key, rec.State, rec.NextAttempt, time.Now())
			}
		})
	}
}

// TestRunSparesOtherOrigins: one that is dead holds up nobody else, and Resume,
// which somebody asked for, tries it.
func TestRunSparesOtherOrigins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead, live := &wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, wiretest.ByHost{"dead.example": dead, "api.example.com": live}, nil)
		stop := clienttest.Run(t, c)
		for i := range 3 {
			for _, host := range []string{"dead.example", "api.example.com"} {
				if err := c.Enqueue(clienttest.Request(t, "POST", "https://"+host+"/", "{}"), oncehttp.NewScope(host).Key(strings.Repeat("x", i+1))); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if live.Count() != 3 || dead.Count() != 1 {
			t.Errorf("%d sends to the living, %d to the dead; want 3 and 1", live.Count(), dead.Count())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Nanosecond) // what a pass could not run is due again after the moment at which it began
		before := dead.Count()
		for _, err := range c.Resume(t.Context()) {
			if !errors.Is(err, oncehttp.ErrNotSent) {
				t.Errorf("Resume: %v", err)
			}
		}
		if dead.Count() == before {
			t.Error("Resume did not try")
		}
	})
}

// TestRunSlowsDown: an operation that fails again and again is tried ever more
// seldom, up to MaxPause, and never runs out of its window unasked.
func TestRunSlowsDown(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Retry = oncehttp.Policy{MaxAttempts: 1, MaxDelay: time.Minute, MaxPause: 10 * time.Minute}
		}))
		clienttest.Enqueue(t, c, 1)
		start := time.Now()
		stop := clienttest.Run(t, c)
		time.Sleep(2 * time.Hour)
		var at []time.Duration
		for _, s := range w.All() {
			at = append(at, s.At.Sub(start))
		}
		const m = time.Minute
		if want := []time.Duration{0, m, 3 * m, 7 * m, 15 * m, 25 * m, 35 * m, 45 * m}; len(at) < 8 || !slices.Equal(at[:8], want) || len(at) > 16 {
			t.Errorf("sent at %v, want %v and then every 10 min", at, want)
		}
		time.Sleep(24 * time.Hour)
		last := w.All()[w.Count()-1].At.Sub(start)
		if rec := clienttest.Lookup(t, c, "k0"); rec.State != persist.StateHeld || last < 24*time.Hour-5*m {
			t.Errorf("it is %v, last sent at %v; want it asked until its window ends", rec.State, last)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
