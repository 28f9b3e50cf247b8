package oncehttp_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestRekeyOfGeneratedKey: what goes on in place of an operation under a generated key stands in the way of the same request
// without a key, before it is sent and after a pass ended it, as the first one did: a loop around Do must not pay twice.
func TestRekeyOfGeneratedKey(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
		c, _ := newClient(t, transport, on(j, oneAttempt))
		_, err := c.Do(pay(t, order))
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		settleAbsent(t, c, e.Key)
		if err := c.Rekey(t.Context(), e.Key, "k2", why); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"before it is sent", "after"} {
			_, err = c.Do(pay(t, order))
			if exactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key != "k2" {
				t.Errorf("%s: %v, want ErrOutcomeUnknown that names k2", when, err)
			}
			pass(t, c)
		}
		if resp, err := c.DoKey(pay(t, order), "k2"); err != nil || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal || effects(server) != 1 {
			t.Errorf("%v, %d effects", err, effects(server))
		}
	})
}

// TestRekeyClock: Rekey judges by the journal's clock who has the operation, and stamps the new one with it.
func TestRekeyClock(t *testing.T) {
	t.Parallel()
	for _, off := range offs {
		bubble(t, func(t *testing.T) {
			j := memory.New()
			one := worker(t, j, &wire{replies: []reply{{err: errLost, delay: 20 * time.Second}}}, off[0], promising)
			s := &shop{}
			two, _ := newClient(t, s, on(newLeasing(j), promising))
			oncehttp.SetOwnClock(two, func() time.Time { return time.Now().Add(off[1]) })
			done := make(chan error)
			go func() { _, err := one.DoKey(post(t, orderOne), "k"); done <- err }()
			time.Sleep(time.Second)
			if err := two.Rekey(t.Context(), "k", "k2", why); !errors.Is(err, oncehttp.ErrInFlight) {
				t.Errorf("clocks %v: %v, want ErrInFlight", off, err)
			}
			<-done
			begun := time.Now()
			if err := two.Rekey(t.Context(), "k", "k2", why); err != nil {
				t.Fatal(err)
			}
			if rec := lookup(t, two, "k2"); !rec.Created.Equal(begun) || time.Until(rec.SendBefore) != 24*time.Hour {
				t.Errorf("clocks %v: begun at %v, to be sent before %v; it was %v", off, rec.Created, rec.SendBefore, begun)
			}
		})
	}
}

// TestRekeyClockJumps: the own clock is set forward when the operation is held: the lookup is asked no earlier for that, since what
// was sent before may not be found yet.
func TestRekeyClockJumps(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j, s := memory.New(), &shop{}
		one := worker(t, j, &wire{replies: []reply{{err: errLost}}}, 0, promising)
		if _, err := one.DoKey(post(t, orderOne), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		off := time.Duration(0)
		jump := once(func() error { off = time.Hour; return nil })
		two, _ := newClient(t, s, on(&leasing{Journal: &faulty{Journal: j, update: jump}, Claimer: j}, promising))
		oncehttp.SetOwnClock(two, func() time.Time { return time.Now().Add(off) })
		begun := time.Now()
		if err := two.Rekey(t.Context(), "k", "k2", why); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); waited < 90*time.Second || waited > 2*time.Minute || s.gets != 1 {
			t.Errorf("asked after %v, %d lookups", waited, s.gets)
		}
		if rec := lookup(t, one, "k2"); time.Until(rec.SendBefore) != 24*time.Hour {
			t.Errorf("to be sent before %v; it is %v", rec.SendBefore, time.Now())
		}
	})
}

// TestRekeyWaitsForASend: another process began a send in the last moment of its lease, and the request takes a while to
// arrive. The lookup is asked once it must have, and finds what it did.
func TestRekeyWaitsForASend(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		promise := func(cfg *oncehttp.Config) { promising(cfg); cfg.Profile.Reference.FoundWithin = 10 * time.Second }
		f := &freezing{Journal: &leasing{Journal: j, Claimer: j}, Claimer: j}
		f.freeze(0, time.Hour) // it cannot reach the journal
		s := &shop{}
		first, _ := newClient(t, &crashing{through: s, at: func(*http.Request) { time.Sleep(25 * time.Second) }}, on(f, promise, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(*http.Request) error { time.Sleep(28 * time.Second); return nil }
		}))
		next, _ := newClient(t, s, on(newLeasing(j), promise))
		done := make(chan error)
		go func() { _, err := first.DoKey(post(t, orderOne), "k"); done <- err }()
		time.Sleep(31 * time.Second)
		err := next.Rekey(t.Context(), "k", "k2", why)
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v, want ErrOutcomeUnknown", err)
		}
		pass(t, next)
		if <-done; s.effects != 1 {
			t.Errorf("%d effects", s.effects)
		}
	})
}

// TestRekeyEndsWithClose: Close ends the wait for a lookup, and leaves the operation held.
func TestRekeyEndsWithClose(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, _, _ := lostOrder(t, &shop{}, promising)
		begun := time.Now()
		time.AfterFunc(time.Second, func() { _ = c.Close() })
		err := c.Rekey(t.Context(), "k", "k2", why)
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrHeld) || !errors.Is(err, oncehttp.ErrClosed) || time.Since(begun) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}
