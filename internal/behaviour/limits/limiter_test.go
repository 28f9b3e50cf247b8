package limits_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
)

// times notes when each request was made.
type times struct {
	to http.RoundTripper
	at []time.Time
}

func (n *times) RoundTrip(req *http.Request) (*http.Response, error) {
	n.at = append(n.at, time.Now())
	return n.to.RoundTrip(req)
}

// TestLimiterOfEveryRequest: whatever is sent to the origin of an operation waits for its limiter, in every call, and counts once:
// attempts, redirects, requests for a token, lookups and undos. The wait counts for no time limit.
func TestLimiterOfEveryRequest(t *testing.T) {
	t.Parallel()
	const period = 10 * time.Minute // longer than any time limit of an attempt
	temporarily := wiretest.Reply{Status: 307, Header: "Location: /moved"}
	do := func(t *testing.T, c *oncehttp.Client) error {
		_, err := c.DoKey(paced(t), "k")
		return err
	}
	run := func(t *testing.T, c *oncehttp.Client) error {
		if err := c.Enqueue(paced(t), "k"); err != nil {
			return err
		}
		stop := clienttest.Run(t, c)
		time.Sleep(2 * time.Hour)
		return stop()
	}
	enqueued := func(t *testing.T, c *oncehttp.Client) error {
		err := c.Enqueue(paced(t), "k")
		clienttest.Pass(t, c)
		return err
	}
	for name, act := range map[string]func(*testing.T, *oncehttp.Client) error{"Do": do, "Run": run, "Resume": enqueued} {
		for _, r := range []struct {
			name     string
			requests int
			to       func(*testing.T) http.RoundTripper
			config   func(*oncehttp.Config)
		}{
			{"redirects", 4, func(*testing.T) http.RoundTripper {
				return &wiretest.Wire{Replies: []wiretest.Reply{temporarily, temporarily, temporarily, {Status: 201}}}
			}, clienttest.OneAttempt},
			{"a redirect and then an attempt", 4, func(*testing.T) http.RoundTripper {
				return &wiretest.Wire{Replies: []wiretest.Reply{temporarily, {Status: 503}, temporarily, {Status: 201}}}
			}, oneMore},
			{"a token", 2, longTickets(), servertest.WithTickets},
			{"tokens", 4, longTickets(mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropAfter}), servertest.WithTickets},
			{"a lookup", 3, func(*testing.T) http.RoundTripper { return &servertest.Shop{Lose: 1} }, servertest.Shopping},
		} {
			t.Run(name+" "+r.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					n := &times{to: r.to(t)}
					limit := &clienttest.Pace{Period: period}
					c, _ := clienttest.New(t, n, func(cfg *oncehttp.Config) {
						cfg.Retry.MaxElapsed = time.Hour
						cfg.Limiter = func(string) oncehttp.Limiter { return limit }
						r.config(cfg)
					})
					if err := act(t, c); err != nil {
						t.Error(err)
					}
					wantPaced(t, n.at, r.requests, period)
					if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed {
						t.Errorf("it is %v", rec.State)
					}
				})
			})
		}
	}
}

// longTickets hands out tokens that outlast the test, after these faults.
func longTickets(faults ...mockserver.Fault) func(*testing.T) http.RoundTripper {
	return func(t *testing.T) http.RoundTripper {
		_, transport := servertest.Tickets(t, func(cfg *mockserver.Config) { cfg.TokenLife, cfg.TokenScript = 24*time.Hour, faults })
		return transport
	}
}

func oneMore(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 2 }

// paced is an order that every server of these tests takes.
func paced(t *testing.T) *http.Request {
	t.Helper()
	return clienttest.Request(t, "POST", "http://mock.test/payments", servertest.OrderOne)
}

// TestLimiterOfUndo: an undo waits for the limiter, until the context of Abandon ends. Then the operation is held, as after an undo
// without an answer.
func TestLimiterOfUndo(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		timeout  time.Duration
		requests int
		state    persist.State
	}{"in time": {time.Hour, 3, persist.StateAbandoned}, "too late": {15 * time.Minute, 2, persist.StateHeld}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := servertest.Square(t)
				_, transport := servertest.Till(t, mockserver.Config{
					Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}},
					UndoScript: []mockserver.Fault{{Kind: mockserver.DropAfter}},
				})
				n, limit := &times{to: transport}, &clienttest.Pace{Period: 10 * time.Minute}
				c, _ := clienttest.New(t, n, func(cfg *oncehttp.Config) {
					clienttest.OneAttempt(cfg)
					cfg.Profile, cfg.Limiter = p, func(string) oncehttp.Limiter { return limit }
				})
				_, _ = c.DoKey(servertest.SquarePay(t), "k")
				ctx, cancel := context.WithTimeout(t.Context(), r.timeout)
				defer cancel()
				err := c.Abandon(ctx, "k", oncehttp.Undo())
				if rec := clienttest.Lookup(t, c, "k"); rec.State != r.state || (err == nil) != (r.state == persist.StateAbandoned) {
					t.Errorf("%v, it is %v, want %v", err, rec.State, r.state)
				}
				wantPaced(t, n.at, r.requests, limit.Period)
			})
		})
	}
}

// TestLimiterRefusesAHop: what the limiter refuses is not sent, also where a redirect leads to it. The send before may have had an
// effect.
func TestLimiterRefusesAHop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 307, Header: "Location: /moved"}, {Status: 201}}}
		asked := 0
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Limiter = func(string) oncehttp.Limiter {
				if asked++; asked == 2 {
					return clienttest.Refuser{}
				}
				return nil
			}
		})
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, clienttest.ErrBurst) || w.Count() != 1 || asked != 2 {
			t.Errorf("%v after %d sends, the limiter was asked %d times; want the outcome unknown after one", err, w.Count(), asked)
		}
	})
}

// wantPaced checks that so many requests were made, one a period.
func wantPaced(t *testing.T, at []time.Time, want int, period time.Duration) {
	t.Helper()
	if len(at) != want {
		t.Errorf("%d requests, want %d", len(at), want)
	}
	for i := 1; i < len(at); i++ {
		if gap := at[i].Sub(at[i-1]); gap < period {
			t.Errorf("request %d came %v after the one before, want %v", i, gap, period)
		}
	}
}
