package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
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
		j     *faulty
		w     *wire
	}
	lost := reply{err: errLost}
	do := func(t *testing.T, c *oncehttp.Client, s *stage) error {
		_, err := c.DoKey(post(t, "{}"), "k")
		return err
	}
	pass := func(t *testing.T, c *oncehttp.Client, s *stage) error {
		for _, err := range c.Resume(t.Context()) {
			return err
		}
		return nil
	}
	places := map[string]struct {
		replies []reply
		setup   func(s *stage)
		act     func(t *testing.T, c *oncehttp.Client, s *stage) error
		sends   int
	}{
		"between begin and the first send": {[]reply{lost}, func(s *stage) {
			s.j.begun = func() error { s.jump(); return nil }
		}, do, 0},
		"on the wire": {[]reply{lost}, func(s *stage) {
			s.w.before = func(int, *http.Request) { s.jump() }
		}, do, 1},
		"between two attempts": {[]reply{lost}, func(s *stage) {
			s.cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventWaiting {
					s.jump()
				}
			}
		}, do, 1},
		"in Authorize": {[]reply{lost}, func(s *stage) {
			s.cfg.Authorize = func(*http.Request) error { s.jump(); return nil }
		}, do, 0},
		"before a hop": {[]reply{{status: 307, header: "Location: /v2"}}, func(s *stage) {
			s.w.before = func(int, *http.Request) { s.jump() }
		}, do, 1},
		"before the next Do": {[]reply{lost}, func(s *stage) {
			s.cfg.Retry.MaxAttempts = 1
		}, func(t *testing.T, c *oncehttp.Client, s *stage) error {
			_ = do(t, c, s)
			s.jump()
			return do(t, c, s)
		}, 1},
		"before a Resume": {[]reply{{status: 503, header: "Retry-After: 0"}}, func(s *stage) {
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
		"between an enqueued one's mark and its send": {[]reply{lost}, func(s *stage) {
			s.cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventAttempt {
					s.jump() // after the first look
				}
			}
			s.cfg.Authorize = func(*http.Request) error { return nil }
		}, func(t *testing.T, c *oncehttp.Client, s *stage) error {
			if err := c.Enqueue(post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			return pass(t, c, s)
		}, 0},
	}
	for place, p := range places {
		for name, jump := range jumps() {
			t.Run(place+" "+name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					s := &stage{clock: &wallClock{}, cfg: &oncehttp.Config{}, j: &faulty{Journal: memory.New()}, w: &wire{replies: p.replies}}
					hurl := once(func() error { s.clock.move(jump); return nil })
					s.jump = func() { _ = hurl() }
					p.setup(s)
					c, _ := newClient(t, s.w, func(cfg *oncehttp.Config) { *cfg = *s.cfg; cfg.Journal, cfg.Transport = s.j, s.w })
					oncehttp.SetNow(c, s.clock.now)
					err := p.act(t, c, s)
					exactlyOne(t, err)
					if s.w.count() != p.sends {
						t.Errorf("%d sends, want %d", s.w.count(), p.sends)
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
func stillDoubt(t *testing.T, c *oncehttp.Client, w *wire, sends int) {
	t.Helper()
	if sends == 0 {
		return // it may be free to be sent as a new one
	}
	for range 2 {
		resume(t, c)
		_, err := c.DoKey(post(t, "{}"), "k")
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != sends {
			t.Errorf("later: %v, %d sends, want %d", err, w.count(), sends)
		}
	}
	if rec := lookup(t, c, "k"); rec.State.Final() {
		t.Errorf("record %v", rec.State)
	}
}

// TestClockRightAgain: a clock that was set back a little, and caught up, has
// cost nothing.
func TestClockRightAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		clock := &wallClock{}
		w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, oneAttempt)
		oncehttp.SetNow(c, clock.now)
		_, _ = c.DoKey(post(t, "{}"), "k")
		clock.move(-50 * time.Second)
		_, err := c.DoKey(post(t, "{}"), "k")
		var e *oncehttp.Error
		if !errors.As(err, &e) || errors.Is(err, oncehttp.ErrHeld) || !e.NextAttempt.Equal(time.Now()) {
			t.Fatalf("%v", err)
		}
		time.Sleep(50 * time.Second)
		if got := resume(t, c); got["k"].err != nil || w.count() != 2 {
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
				bubble(t, func(t *testing.T) {
					j := memory.New()
					w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
					c, _ := newClient(t, w, on(j, window(r.begun)))
					_, _ = c.DoKey(post(t, "{}"), "k")
					time.Sleep(r.after)
					next, _ := newClient(t, w, on(j, window(r.later)))
					var err error
					if how == "Do" {
						_, err = next.DoKey(post(t, "{}"), "k")
					} else {
						err = resume(t, next)["k"].err
					}
					if r.sent != (err == nil) || (w.count() == 2) != r.sent || !r.sent && !errors.Is(err, oncehttp.ErrKeyExpired) {
						t.Errorf("%v after %d sends, want it sent: %v", err, w.count(), r.sent)
					}
				})
			})
		}
	}
}

// TestExpiredIsHeld until somebody settles it: no caller and no pass sends it.
func TestExpiredIsHeld(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, on(j, oneAttempt))
		_, _ = c.DoKey(post(t, "{}"), "k")
		time.Sleep(30 * 24 * time.Hour)
		if got := resume(t, c)["k"].err; !errors.Is(got, oncehttp.ErrKeyExpired) {
			t.Errorf("%v", got)
		}
		for range 2 {
			_, err := c.DoKey(post(t, "{}"), "k")
			if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrHeld) || !strings.Contains(err.Error(), string(persist.HoldExpired)) {
				t.Errorf("%v", err)
			}
			if got := resume(t, c); len(got) != 0 {
				t.Errorf("resumed %v", got)
			}
		}
		if rec := lookup(t, c, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldExpired || w.count() != 1 {
			t.Errorf("record %v %q after %d sends", rec.State, rec.HoldReason, w.count())
		}
		if err := absentAsSeen(c, t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if _, err := c.DoKey(post(t, "{}"), oncehttp.Key("k").Generation(2)); err != nil || w.count() != 2 {
			t.Errorf("the next generation: %v", err)
		}
	})
}
