package run_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// waitsOf is what a drive that never gets an answer waits between its attempts.
func waitsOf(t *testing.T, policy oncehttp.Policy, p *profile.Profile) (waits []time.Duration) {
	t.Helper()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.Retry, cfg.Profile = policy, p
		cfg.Observe = func(_ context.Context, e oncehttp.Event) {
			if e.Kind == oncehttp.EventWaiting {
				waits = append(waits, e.Wait)
			}
		}
	})
	if _, err := c.DoKey(clienttest.Post(t, "{}"), oncehttp.RandomKey()); err == nil {
		t.Fatal("no error")
	}
	for i, s := range w.Sends[1:] {
		if got := s.At.Sub(w.Sends[i].At); got != waits[i] {
			t.Fatalf("wait %d was said to be %v and was %v", i, waits[i], got)
		}
	}
	return waits
}

// TestFullJitter: each wait is uniform between zero and a bound that grows from
// MinDelay by half to MaxDelay, and no wait, the first included, is over its bound.
func TestFullJitter(t *testing.T) {
	t.Parallel()
	const drives, least, most = 400, 100 * time.Millisecond, time.Second
	synctest.Test(t, func(t *testing.T) {
		policy := oncehttp.Policy{MaxAttempts: 13, MinDelay: least, MaxDelay: most, MaxElapsed: time.Hour}
		sum, top := make([]time.Duration, 12), make([]time.Duration, 12)
		for range drives {
			for i, d := range waitsOf(t, policy, nil) {
				sum[i] += d
				top[i] = max(top[i], d)
				if d < 0 || d > most {
					t.Fatalf("wait %d is %v, want 0 to %v", i, d, most)
				}
			}
		}
		bound := float64(least)
		for i := range sum {
			// backoff/v4 may exceed its own bound by a nanosecond.
			if top[i] > time.Duration(bound)+2 || top[i] < time.Duration(bound*0.9) {
				t.Errorf("wait %d is at most %v in %d drives, want nearly %v and no more", i, top[i], drives, time.Duration(bound))
			}
			if mean := sum[i] / drives; mean < time.Duration(bound*0.42) || mean > time.Duration(bound*0.58) {
				t.Errorf("wait %d is %v on average, want half of %v", i, mean, time.Duration(bound))
			}
			bound = min(bound*1.5, float64(most))
		}
	})
}

// TestSchedulesAreTheirOwn: a schedule has state, so each drive starts from the first
// bound, whatever others have come to.
func TestSchedulesAreTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			waits := waitsOf(t, oncehttp.Policy{MaxAttempts: 3, MinDelay: 10 * time.Millisecond, MaxDelay: time.Hour}, nil)
			if waits[0] > 10*time.Millisecond+2 || waits[1] > 15*time.Millisecond+2 {
				t.Errorf("waits %v", waits)
			}
		}
	})
}

// TestEqualBounds: backoff/v4 applies its jitter after its cap, also to the first
// wait.
func TestEqualBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			for _, d := range waitsOf(t, oncehttp.Policy{MinDelay: time.Second, MaxDelay: time.Second}, nil) {
				if d < 0 || d > time.Second {
					t.Fatalf("a wait of %v, want at most 1s", d)
				}
			}
		}
	})
}

// TestProfilesMinDelay: no wait is below what the API asks for.
func TestProfilesMinDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := profile.Draft07()
		p.Name, p.MinDelay = "slow", 5*time.Second
		for _, d := range waitsOf(t, oncehttp.Policy{MinDelay: 1, MaxDelay: time.Second}, p) {
			if d != 5*time.Second {
				t.Errorf("a wait of %v, want the profile's 5s", d)
			}
		}
	})
}

// TestMaxElapsed: no attempt starts later than MaxElapsed after the first, and
// the attempts' own time counts (backoff#188).
func TestMaxElapsed(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		delay time.Duration
		sends int
	}{{time.Minute, 3}, {time.Minute + 2, 2}, {0, 100}} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Delay: r.delay}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
				cfg.Retry = oncehttp.Policy{MaxAttempts: 100, MaxElapsed: 2*time.Minute + 2, AttemptTimeout: time.Hour, MinDelay: 1, MaxDelay: 1}
			})
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if w.Count() != r.sends || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("attempts of %v: %d sends, %v; want %d", r.delay, w.Count(), err, r.sends)
			}
			if last := w.Sends[len(w.Sends)-1].At.Sub(w.Sends[0].At); last > 2*time.Minute+2 {
				t.Errorf("the last send began after %v", last)
			}
		})
	}
}

// TestWindow: sendable while 0 ≤ now − first-sent < window − margin, by the wall
// clock, in every drive of a record's life.
func TestWindow(t *testing.T) {
	t.Parallel()
	const floor, margin = 10 * time.Minute, 30*time.Second + time.Minute
	for _, r := range []struct {
		name  string
		after time.Duration
		sent  bool
	}{
		{"a moment before", floor - margin - 1, true},
		{"at the end", floor - margin, false},
		{"after the window", floor, false},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := profile.Draft07()
				p.Window.Floor = floor
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}, {Status: 201}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile, cfg.Retry.MaxAttempts = p, 1 })
				if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				time.Sleep(r.after)
				_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if r.sent != (err == nil) || w.Count() != map[bool]int{true: 2, false: 1}[r.sent] {
					t.Fatalf("%v after %d sends; want it sent: %v", err, w.Count(), r.sent)
				}
				if rec := clienttest.Lookup(t, c, "k"); !r.sent && (!errors.Is(err, oncehttp.ErrKeyExpired) || rec.HoldReason != persist.HoldExpired) {
					t.Errorf("%v, record %v %q; want expired and held", err, rec.State, rec.HoldReason)
				}
			})
		})
	}
}

// TestWindowAndWaits: a wait that would end past the window is not begun, and the
// operation is left for somebody to look at, not lost.
func TestWindowAndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := profile.Draft07()
		p.Window.Floor = 5 * time.Minute // sendable for 4: 30 s attempt timeout, 30 s skew
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 239"}, {Status: 503, Header: "Retry-After: 2"}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { clienttest.Unhurried(cfg); cfg.Profile = p })
		start := time.Now()
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if w.Count() != 2 || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "window") {
			t.Errorf("%v after %d sends, want 2 and the window named", err, w.Count())
		}
		if took := time.Since(start); took < 239*time.Second || took > 240*time.Second {
			t.Errorf("it took %v, want no second wait", took)
		}
	})
}

// TestWindowAndAuthorize: the time that Authorize takes counts; what was open
// before it may be over after it.
func TestWindowAndAuthorize(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		takes time.Duration
		sends int
	}{{20*time.Second - 1, 2}, {20 * time.Second, 1}} {
		synctest.Test(t, func(t *testing.T) {
			p := profile.Draft07()
			p.Window.Floor = 100 * time.Second // sendable for 60
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 40"}, {Status: 201}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
				clienttest.Unhurried(cfg)
				cfg.Profile = p
				cfg.Authorize = func(*http.Request) error {
					if w.Count() == 1 {
						time.Sleep(r.takes)
					}
					return nil
				}
			})
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if (err == nil) != (r.sends == 2) || err != nil && !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != r.sends {
				t.Errorf("Authorize takes %v: %v after %d sends, want %d", r.takes, err, w.Count(), r.sends)
			}
		})
	}
}

// TestClockSetBack: a first send that lies in the future is waited for if it may
// be the clock's own doing, and is Expired if it lies further off than ClockSkew.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		ahead time.Duration
		held  bool
	}{{time.Minute, false}, {time.Minute + 1, true}} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, j := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Authorize = nil })
			rec, err := c.Prepare(clienttest.Post(t, "{}"), "k")
			if err != nil {
				t.Fatal(err)
			}
			first := time.Now().Round(0).Add(r.ahead)
			rec.MaybeSent, rec.FirstSent = true, first
			if _, _, err := j.Begin(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			_, err = c.DoKey(clienttest.Post(t, "{}"), "k")
			clienttest.ExactlyOne(t, err)
			if w.Count() != 0 || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrKeyExpired) != r.held {
				t.Errorf("first sent %v ahead: %v after %d sends, want none, and held: %v", r.ahead, err, w.Count(), r.held)
			}
			if got := clienttest.Lookup(t, c, "k"); (got.State == persist.StateHeld) != r.held {
				t.Errorf("record %v", got.State)
			}
			if r.held {
				return
			}
			time.Sleep(r.ahead)
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Errorf("once the clock has caught up: %v", err)
			}
		})
	}
}
