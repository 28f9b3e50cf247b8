package rekey_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestRekeyOfGeneratedKey: what goes on in place of an operation under a generated key stands in the way of the same request
// without a key, before it is sent and after a pass ended it, as the first one did: a loop around Do must not pay twice.
func TestRekeyOfGeneratedKey(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
		c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt))
		_, err := c.Do(servertest.Pay(t, servertest.Order))
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		clienttest.Absent(t, c, e.Key)
		if err := clienttest.RekeyAsSeen(c, t.Context(), e.Key, "k2", servertest.Why); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"before it is sent", "after"} {
			_, err = c.Do(servertest.Pay(t, servertest.Order))
			if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key != "k2" {
				t.Errorf("%s: %v, want ErrOutcomeUnknown that names k2", when, err)
			}
			clienttest.Pass(t, c)
		}
		if resp, err := c.DoKey(servertest.Pay(t, servertest.Order), "k2"); err != nil || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal || servertest.Effects(server) != 1 {
			t.Errorf("%v, %d effects", err, servertest.Effects(server))
		}
	})
}

// TestRekeyWaitsForASend: another process began a send in the last moment of its lease, and the request takes a while to
// arrive. The lookup is asked once it must have, and finds what it did.
func TestRekeyWaitsForASend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		promise := func(cfg *oncehttp.Config) {
			servertest.Promising(cfg)
			cfg.Profile.Reference.FoundWithin = 10 * time.Second
		}
		f := &journaltest.Freezing{Journal: &journaltest.Leasing{Journal: j, Claimer: j}, Claimer: j}
		f.Freeze(0, time.Hour) // it cannot reach the journal
		s := &servertest.Shop{}
		first, _ := clienttest.New(t, &wiretest.Crashing{Through: s, At: func(*http.Request) { time.Sleep(25 * time.Second) }}, clienttest.On(f, promise, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(*http.Request) error { time.Sleep(28 * time.Second); return nil }
		}))
		next, _ := clienttest.New(t, s, clienttest.On(journaltest.NewLeasing(j), promise, clienttest.AddsNothing))
		done := make(chan error)
		go func() { _, err := first.DoKey(clienttest.Post(t, servertest.OrderOne), "k"); done <- err }()
		time.Sleep(31 * time.Second)
		err := clienttest.RekeyAsSeen(next, t.Context(), "k", "k2", servertest.Why)
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v, want ErrOutcomeUnknown", err)
		}
		clienttest.Pass(t, next)
		if <-done; s.Effects != 1 {
			t.Errorf("%d effects", s.Effects)
		}
		time.Sleep(time.Until(f.To)) // no Close waits longer for a renewal that does not end
	})
}

// TestRekeyEndsWithClose: Close ends the wait for a lookup, and leaves the operation held.
func TestRekeyEndsWithClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := servertest.LostOrder(t, &servertest.Shop{}, servertest.Promising)
		begun := time.Now()
		time.AfterFunc(time.Second, func() { _ = c.Close() })
		err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why)
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrHeld) || !errors.Is(err, oncehttp.ErrClosed) || time.Since(begun) > time.Second {
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
	wiretest.HandedOver(req)
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
		servertest.Promising(cfg)
		cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = 30*time.Minute, 40*time.Minute
	}
	limit := func(cfg *oncehttp.Config) {
		long(cfg)
		limit := &clienttest.Pace{Period: 2 * time.Hour}
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
			synctest.Test(t, func(t *testing.T) {
				j, s := memory.New(), &servertest.Shop{}
				one, _ := clienttest.New(t, &later{s, 20 * time.Minute}, clienttest.On(j, r.sender))
				ctx, cancel := context.WithTimeout(t.Context(), r.leaves)
				defer cancel()
				if _, err := one.DoKey(clienttest.Post(t, servertest.OrderOne).WithContext(ctx), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				time.Sleep(r.pause)
				two, _ := clienttest.New(t, s, clienttest.On(journaltest.NewLeasing(j), servertest.Promising))
				begun := time.Now()
				err := clienttest.RekeyAsSeen(two, t.Context(), "k", "k2", servertest.Why)
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "it took effect") {
					t.Errorf("%v, want that it took effect", err)
				}
				if took := time.Since(begun); took < r.waits || took > r.most {
					t.Errorf("after %v, want %v to %v", took, r.waits, r.most)
				}
				clienttest.Pass(t, two)
				if time.Sleep(time.Hour); s.Effects != 1 {
					t.Errorf("%d effects", s.Effects)
				}
			})
		})
	}
}
