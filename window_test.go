package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// jumps are where the wall clock is suddenly found, while no time has passed for
// any timer: a suspend, or somebody who sets it.
func jumps() map[string]time.Duration {
	return map[string]time.Duration{
		"past the window": 24 * time.Hour, "into the margin": 24*time.Hour - 90*time.Second, "years on": 9 * 365 * 24 * time.Hour,
		"back a little": -30 * time.Second, "back a lot": -time.Hour, "back for years": -9 * 365 * 24 * time.Hour,
	}
}

// TestSuspend: wherever in an operation's life the wall clock jumps out of the
// window, nothing more is sent, and the operation stays in doubt.
func TestSuspend(t *testing.T) {
	t.Parallel()
	type stage struct {
		clock *wallClock
		jump  func()
		cfg   *oncehttp.Config
		j     *journaltest.Faulty
		w     *wiretest.Wire
	}
	lost := wiretest.Reply{Err: wiretest.ErrLost}
	do := func(t *testing.T, c *oncehttp.Client, s *stage) error {
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		return err
	}
	pass := func(t *testing.T, c *oncehttp.Client, s *stage) error {
		for _, err := range c.Resume(t.Context()) {
			return err
		}
		return nil
	}
	places := map[string]struct {
		replies []wiretest.Reply
		setup   func(s *stage)
		act     func(t *testing.T, c *oncehttp.Client, s *stage) error
		sends   int
	}{
		"between begin and the first send": {[]wiretest.Reply{lost}, func(s *stage) {
			s.j.OnBegun = func() error { s.jump(); return nil }
		}, do, 0},
		"on the wire": {[]wiretest.Reply{lost}, func(s *stage) {
			s.w.Before = func(int, *http.Request) { s.jump() }
		}, do, 1},
		"between two attempts": {[]wiretest.Reply{lost}, func(s *stage) {
			s.cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventWaiting {
					s.jump()
				}
			}
		}, do, 1},
		"in Authorize": {[]wiretest.Reply{lost}, func(s *stage) {
			s.cfg.Authorize = func(*http.Request) error { s.jump(); return nil }
		}, do, 0},
		"before a hop": {[]wiretest.Reply{{Status: 307, Header: "Location: /v2"}}, func(s *stage) {
			s.w.Before = func(int, *http.Request) { s.jump() }
		}, do, 1},
		"before the next Do": {[]wiretest.Reply{lost}, func(s *stage) {
			s.cfg.Retry.MaxAttempts = 1
		}, func(t *testing.T, c *oncehttp.Client, s *stage) error {
			_ = do(t, c, s)
			s.jump()
			return do(t, c, s)
		}, 1},
		"before a Resume": {[]wiretest.Reply{{Status: 503, Header: "Retry-After: 0"}}, func(s *stage) {
			s.cfg.Retry.MaxAttempts, s.cfg.Retry.MinDelay, s.cfg.Retry.MaxDelay = 1, 1, 1
		}, func(t *testing.T, c *oncehttp.Client, s *stage) error {
			err := do(t, c, s)
			time.Sleep(time.Second)
			s.jump()
			if again := pass(t, c, s); again != nil {
				return again
			}
			return err // set back so far that it is not due
		}, 1},
		"between an enqueued one's mark and its send": {[]wiretest.Reply{lost}, func(s *stage) {
			s.cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventAttempt {
					s.jump() // after the first look
				}
			}
			s.cfg.Authorize = func(*http.Request) error { return nil }
		}, func(t *testing.T, c *oncehttp.Client, s *stage) error {
			if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			return pass(t, c, s)
		}, 0},
	}
	for place, p := range places {
		for name, jump := range jumps() {
			t.Run(place+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &stage{clock: &wallClock{}, cfg: &oncehttp.Config{}, j: &journaltest.Faulty{Journal: memory.New()}, w: &wiretest.Wire{Replies: p.replies}}
					hurl := journaltest.Once(func() error { s.clock.move(jump); return nil })
					s.jump = func() { _ = hurl() }
					p.setup(s)
					c, _ := clienttest.New(t, s.w, func(cfg *oncehttp.Config) { *cfg = *s.cfg; cfg.Journal, cfg.Transport = s.j, s.w })
					oncehttp.SetNow(c, s.clock.now)
					err := p.act(t, c, s)
					clienttest.ExactlyOne(t, err)
					if s.w.Count() != p.sends {
						t.Errorf("%d sends, want %d", s.w.Count(), p.sends)
					}
					if p.sends > 0 && !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("%v, want ErrOutcomeUnknown", err)
					}
					stillDoubt(t, c, s.w, p.sends)
				})
			})
		}
	}
}

// stillDoubt: later calls at the same wall clock send nothing either, and never
// say that what was sent had no effect.
func stillDoubt(t *testing.T, c *oncehttp.Client, w *wiretest.Wire, sends int) {
	t.Helper()
	if sends == 0 {
		return // it may be free to be sent as a new one
	}
	for range 2 {
		clienttest.Resume(t, c)
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != sends {
			t.Errorf("later: %v, %d sends, want %d", err, w.Count(), sends)
		}
	}
	if rec := clienttest.Lookup(t, c, "k"); rec.State.Final() {
		t.Errorf("record %v", rec.State)
	}
}

// TestClockRightAgain: a clock that was set back a little, and caught up, has
// cost nothing.
func TestClockRightAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := &wallClock{}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.OneAttempt)
		oncehttp.SetNow(c, clock.now)
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		clock.move(-50 * time.Second)
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		var e *oncehttp.Error
		if !errors.As(err, &e) || errors.Is(err, oncehttp.ErrHeld) || !e.NextAttempt.Equal(time.Now()) {
			t.Fatalf("%v", err)
		}
		time.Sleep(50 * time.Second)
		if got := clienttest.Resume(t, c); got["k"].Err != nil || w.Count() != 2 {
			t.Errorf("%v", got)
		}
	})
}

// TestShorterWindowCounts: an operation goes by the window that it was begun under, or by that of the profile of whoever sends it,
// whichever is shorter.
func TestShorterWindowCounts(t *testing.T) {
	t.Parallel()
	window := func(d time.Duration) func(*oncehttp.Config) {
		return func(cfg *oncehttp.Config) {
			cfg.Retry.MaxAttempts = 1
			cfg.Profile = profile.Draft07()
			cfg.Profile.Window.Floor = d
		}
	}
	for _, r := range []struct {
		begun, later, after time.Duration
		sent                bool
	}{
		{time.Hour, 100 * time.Hour, 2 * time.Hour, false},
		{100 * time.Hour, time.Hour, 2 * time.Hour, false},
		{100 * time.Hour, 3 * time.Hour, 2 * time.Hour, true},
	} {
		for _, how := range []string{"Do", "Resume"} {
			t.Run(fmt.Sprint(r.begun, r.later, how), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := memory.New()
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
					c, _ := clienttest.New(t, w, clienttest.On(j, window(r.begun)))
					_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
					time.Sleep(r.after)
					next, _ := clienttest.New(t, w, clienttest.On(j, window(r.later)))
					var err error
					if how == "Do" {
						_, err = next.DoKey(clienttest.Post(t, "{}"), "k")
					} else {
						err = clienttest.Resume(t, next)["k"].Err
					}
					if r.sent != (err == nil) || (w.Count() == 2) != r.sent || !r.sent && !errors.Is(err, oncehttp.ErrKeyExpired) {
						t.Errorf("%v after %d sends, want it sent: %v", err, w.Count(), r.sent)
					}
				})
			})
		}
	}
}

// TestExpiredIsHeld until somebody settles it: no caller and no pass sends it.
func TestExpiredIsHeld(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		time.Sleep(30 * 24 * time.Hour)
		if got := clienttest.Resume(t, c)["k"].Err; !errors.Is(got, oncehttp.ErrKeyExpired) {
			t.Errorf("%v", got)
		}
		for range 2 {
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrHeld) || !strings.Contains(err.Error(), string(persist.HoldExpired)) {
				t.Errorf("%v", err)
			}
			if got := clienttest.Resume(t, c); len(got) != 0 {
				t.Errorf("resumed %v", got)
			}
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldExpired || w.Count() != 1 {
			t.Errorf("record %v %q after %d sends", rec.State, rec.HoldReason, w.Count())
		}
		if err := clienttest.AbsentAsSeen(c, t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), oncehttp.Key("k").Generation(2)); err != nil || w.Count() != 2 {
			t.Errorf("the next generation: %v", err)
		}
	})
}

// wallClock is a clock that can be set, or that a suspend moves on.
type wallClock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *wallClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *wallClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// TestRekeyClock: Rekey judges by the journal's clock who has the operation, and stamps the new one with it.
func TestRekeyClock(t *testing.T) {
	t.Parallel()
	for _, off := range offs {
		synctest.Test(t, func(t *testing.T) {
			j := memory.New()
			one := worker(t, j, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost, Delay: 20 * time.Second}}}, off[0], servertest.Promising)
			s := &servertest.Shop{}
			two, _ := clienttest.New(t, s, clienttest.On(journaltest.NewLeasing(j), servertest.Promising))
			oncehttp.SetOwnClock(two, func() time.Time { return time.Now().Add(off[1]) })
			done := make(chan error)
			go func() { _, err := one.DoKey(clienttest.Post(t, servertest.OrderOne), "k"); done <- err }()
			time.Sleep(time.Second)
			if err := clienttest.RekeyAsSeen(two, t.Context(), "k", "k2", servertest.Why); !errors.Is(err, oncehttp.ErrInFlight) {
				t.Errorf("clocks %v: %v, want ErrInFlight", off, err)
			}
			<-done
			begun := time.Now()
			if err := clienttest.RekeyAsSeen(two, t.Context(), "k", "k2", servertest.Why); err != nil {
				t.Fatal(err)
			}
			if rec := clienttest.Lookup(t, two, "k2"); !rec.Created.Equal(begun) || time.Until(rec.SendBefore) != 24*time.Hour {
				t.Errorf("clocks %v: begun at %v, to be sent before %v; it was %v", off, rec.Created, rec.SendBefore, begun)
			}
		})
	}
}

// TestRekeyClockJumps: the own clock is set forward when the operation is held: the lookup is asked no earlier for that, since what
// was sent before may not be found yet.
func TestRekeyClockJumps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, s := memory.New(), &servertest.Shop{}
		one := worker(t, j, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, 0, servertest.Promising)
		if _, err := one.DoKey(clienttest.Post(t, servertest.OrderOne), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		off := time.Duration(0)
		jump := journaltest.Once(func() error { off = time.Hour; return nil })
		two, _ := clienttest.New(t, s, clienttest.On(&journaltest.Leasing{Journal: &journaltest.Faulty{Journal: j, OnUpdate: jump}, Claimer: j}, servertest.Promising))
		oncehttp.SetOwnClock(two, func() time.Time { return time.Now().Add(off) })
		begun := time.Now()
		if err := clienttest.RekeyAsSeen(two, t.Context(), "k", "k2", servertest.Why); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); waited < 5*time.Minute || waited > 6*time.Minute || s.Gets != 1 {
			t.Errorf("asked after %v, %d lookups", waited, s.Gets)
		}
		if rec := clienttest.Lookup(t, one, "k2"); time.Until(rec.SendBefore) != 24*time.Hour {
			t.Errorf("to be sent before %v; it is %v", rec.SendBefore, time.Now())
		}
	})
}
