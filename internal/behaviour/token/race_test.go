package token_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
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

// TestStolenToken: a token is worth nothing to another caller, and for another purpose, and is still good for its own.
func TestStolenToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, transport := servertest.Tickets(t, nil)
		victim := &wiretest.Crashing{Through: transport}
		victim.At = func(req *http.Request) {
			if !isOperation(req) {
				return
			}
			for path, caller := range map[string]string{"/payments": "Bearer thief", "/refunds": req.Header.Get("Authorization")} {
				stolen := clienttest.Request(t, "POST", "http://mock.test"+path, servertest.Order)
				stolen.Header.Set("Authorization", caller)
				stolen.Header.Set("Idempotency-Key", req.Header.Get("Idempotency-Key"))
				resp, err := transport.RoundTrip(stolen)
				if err != nil || resp.StatusCode != 403 || servertest.Effects(server) != 0 {
					t.Errorf("%s as %q: %v, %v", path, caller, err, resp)
				}
				clienttest.Read(t, resp)
			}
		}
		c, _ := clienttest.New(t, victim, servertest.WithTickets)
		req := servertest.Pay(t, servertest.Order)
		req.Header.Set("Authorization", "Bearer victim")
		if resp, err := c.DoKey(req, "order-1"); err != nil || resp.StatusCode != 201 {
			t.Errorf("the owner: %v", err)
		}
		if servertest.Effects(server) != 1 || server.Tokens() != 1 {
			t.Errorf("%d effects, %d tokens", servertest.Effects(server), server.Tokens())
		}
	})
}

// TestTwoCallsOneToken: two calls at once with one key, in one process and in two, have one token and one effect between
// them.
func TestTwoCallsOneToken(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			server, transport := servertest.Tickets(t, nil)
			shared := memory.New()
			one, _ := clienttest.New(t, transport, clienttest.On(journaltest.NewLeasing(shared), servertest.WithTickets))
			other := one
			if processes == 2 {
				other, _ = clienttest.New(t, transport, clienttest.On(journaltest.NewLeasing(shared), servertest.WithTickets))
			}
			var calls sync.WaitGroup
			var good atomic.Int32
			for _, c := range []*oncehttp.Client{one, other} {
				calls.Go(func() {
					_, err := c.DoKey(servertest.Pay(t, servertest.Order), "order-1")
					switch {
					case err == nil:
						good.Add(1)
					case !errors.Is(err, oncehttp.ErrInFlight):
						t.Error(err)
					}
				})
			}
			calls.Wait()
			if good.Load() == 0 {
				t.Errorf("%d processes: nobody got the answer", processes)
			}
			wantTokens(t, server, 1, 1, 1)
		})
	}
}

// TestTokenLosesTheRace: while a call asks for its token, another process, whose clock runs ahead, takes the operation over
// and writes a token of its own. The call then sends nothing.
func TestTokenLosesTheRace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		j := memory.New()
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			servertest.WithTickets(cfg)
			cfg.Profile.Token = &profile.Token{}
			cfg.Token = func(ctx context.Context, rec persist.Record) (string, error) {
				theirs := rec
				theirs.Token, theirs.MaybeSent, theirs.FirstSent = "theirs", true, time.Now()
				_, err := j.Update(ctx, theirs)
				return "ours", err
			}
		}))
		_, err := c.DoKey(clienttest.Post(t, servertest.Order), "order-1")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 0 {
			t.Errorf("%v after %d sends, want ErrOutcomeUnknown after none", err, w.Count())
		}
		if rec := clienttest.Lookup(t, c, "order-1"); rec.Token != "theirs" || !rec.MaybeSent {
			t.Errorf("the record: %q, maybe sent %t", rec.Token, rec.MaybeSent)
		}
	})
}
