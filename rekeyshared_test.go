package oncehttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
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
		if err := rekeyAsSeen(c, t.Context(), e.Key, "k2", why); err != nil {
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
			if err := rekeyAsSeen(two, t.Context(), "k", "k2", why); !errors.Is(err, oncehttp.ErrInFlight) {
				t.Errorf("clocks %v: %v, want ErrInFlight", off, err)
			}
			<-done
			begun := time.Now()
			if err := rekeyAsSeen(two, t.Context(), "k", "k2", why); err != nil {
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
		if err := rekeyAsSeen(two, t.Context(), "k", "k2", why); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); waited < 5*time.Minute || waited > 6*time.Minute || s.gets != 1 {
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
		next, _ := newClient(t, s, on(newLeasing(j), promise, addsNothing))
		done := make(chan error)
		go func() { _, err := first.DoKey(post(t, orderOne), "k"); done <- err }()
		time.Sleep(31 * time.Second)
		err := rekeyAsSeen(next, t.Context(), "k", "k2", why)
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v, want ErrOutcomeUnknown", err)
		}
		pass(t, next)
		if <-done; s.effects != 1 {
			t.Errorf("%d effects", s.effects)
		}
		time.Sleep(time.Until(f.to)) // no Close waits longer for a renewal that does not end
	})
}

// TestRekeyEndsWithClose: Close ends the wait for a lookup, and leaves the operation held.
func TestRekeyEndsWithClose(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, _, _ := lostOrder(t, &shop{}, promising)
		begun := time.Now()
		time.AfterFunc(time.Second, func() { _ = c.Close() })
		err := rekeyAsSeen(c, t.Context(), "k", "k2", why)
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrHeld) || !errors.Is(err, oncehttp.ErrClosed) || time.Since(begun) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// later is a transport whose requests arrive a while after the sender has given them up.
type later struct {
	to    http.RoundTripper
	after time.Duration
}

func (l *later) RoundTrip(req *http.Request) (*http.Response, error) {
	handedOver(req)
	body, _ := io.ReadAll(req.Body)
	copied := req.Clone(context.Background())
	time.AfterFunc(l.after, func() {
		copied.Body = io.NopCloser(bytes.NewReader(body))
		_, _ = l.to.RoundTrip(copied)
	})
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// TestRekeyWaitsForASenderWithLongerTimeouts: how long a send may be on its way is for the client that sent it to say, and not for the
// one that rekeys; also of a send that has waited for its limiter.
func TestRekeyWaitsForASenderWithLongerTimeouts(t *testing.T) {
	t.Parallel()
	long := func(cfg *oncehttp.Config) {
		promising(cfg)
		cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = 30*time.Minute, 40*time.Minute
	}
	limit := func(cfg *oncehttp.Config) {
		long(cfg)
		limit := &pace{period: 2 * time.Hour}
		_ = limit.Wait(context.Background()) // the next one waits for two hours
		cfg.Limiter = func(string) oncehttp.Limiter { return limit }
	}
	for name, r := range map[string]struct {
		sender func(*oncehttp.Config)
		leaves time.Duration // when the caller of the sender does
		pause  time.Duration // before the Rekey
		waits  time.Duration // at least
		most   time.Duration
	}{
		"at once":           {long, time.Second, 0, 20 * time.Minute, time.Hour},
		"a while later":     {long, time.Second, 15 * time.Minute, 5 * time.Minute, time.Hour},
		"long after":        {long, time.Second, 2 * time.Hour, time.Minute, time.Minute},
		"after its limiter": {limit, 2*time.Hour + time.Second, 0, 20 * time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				j, s := memory.New(), &shop{}
				one, _ := newClient(t, &later{s, 20 * time.Minute}, on(j, r.sender))
				ctx, cancel := context.WithTimeout(t.Context(), r.leaves)
				defer cancel()
				if _, err := one.DoKey(post(t, orderOne).WithContext(ctx), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				time.Sleep(r.pause)
				two, _ := newClient(t, s, on(newLeasing(j), promising))
				begun := time.Now()
				err := rekeyAsSeen(two, t.Context(), "k", "k2", why)
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "it took effect") {
					t.Errorf("%v, want that it took effect", err)
				}
				if took := time.Since(begun); took < r.waits || took > r.most {
					t.Errorf("after %v, want %v to %v", took, r.waits, r.most)
				}
				pass(t, two)
				if time.Sleep(time.Hour); s.effects != 1 {
					t.Errorf("%d effects", s.effects)
				}
			})
		})
	}
}
