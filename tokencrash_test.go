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

// crashing lets a test look at the journal at the moment of each request, as a process that is killed then leaves it.
type crashing struct {
	through http.RoundTripper
	at      func(req *http.Request) // before it is sent
	lose    func(req *http.Request) bool
}

func (c *crashing) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.at != nil {
		c.at(req)
	}
	if c.lose != nil && c.lose(req) {
		handedOver(req)
		return nil, errLost
	}
	return c.through.RoundTrip(req)
}

// TestCrashAroundToken: a process dies while it asks for the token, before it wrote it, and when it has written it. The
// next one asks anew only where no token is durable, and there is one effect.
func TestCrashAroundToken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		when   func(*http.Request) bool // the crash comes just before this request leaves
		tokens int                      // in all
	}{
		{"before the token", func(req *http.Request) bool { return !isOperation(req) }, 1},
		{"between token and send", isOperation, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				server, transport := tickets(t, func(cfg *mockserver.Config) { cfg.TokenLife = 2 * time.Hour })
				var left persist.Journal
				j := memory.New()
				dying := &crashing{through: transport, lose: c.when}
				dying.at = func(req *http.Request) {
					if c.when(req) {
						left = survivors(t, j)
					}
				}
				first, _ := newClient(t, dying, on(j, withTickets, oneAttempt))
				_, _ = first.DoKey(pay(t, order), "order-1")
				rec, err := left.Get(t.Context(), persist.ID{Key: "order-1"})
				if err != nil || rec.MaybeSent != (rec.Token != "") || rec.MaybeSent == rec.FirstSent.IsZero() {
					t.Fatalf("what is left: %+v, %v", rec, err)
				}
				time.Sleep(time.Hour) // the dead process's lease ends
				next, _ := newClient(t, transport, on(left, withTickets))
				for _, err := range next.Resume(t.Context()) {
					if err != nil {
						t.Error(err)
					}
				}
				after := lookup(t, next, "order-1")
				if after.State != persist.StateConfirmed || rec.Token != "" && after.Token != rec.Token {
					t.Errorf("%v with token %q, before %q", after.State, after.Token, rec.Token)
				}
				wantTokens(t, server, c.tokens, 1, 1)
			})
		})
	}
}

// TestTokenIsDurableFirst: where the journal cannot write the token, nothing is sent. It is "no effect" only if the record
// could be forgotten.
func TestTokenIsDurableFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		break_ func(*faulty)
		is     error
	}{
		{"not written", func(j *faulty) { j.update = fails(errDisk) }, oncehttp.ErrNoEffect},
		{"nor forgotten", func(j *faulty) { j.update, j.forget = fails(errDisk), fails(errDisk) }, oncehttp.ErrOutcomeUnknown},
	} {
		bubble(t, func(t *testing.T) {
			server, transport := tickets(t, nil)
			j := &faulty{Journal: memory.New()}
			client, _ := newClient(t, transport, on(j, withTickets))
			c.break_(j)
			_, err := client.DoKey(pay(t, order), "order-1")
			if exactlyOne(t, err); !errors.Is(err, c.is) {
				t.Errorf("%s: %v, want %v", c.name, err, c.is)
			}
			wantTokens(t, server, 1, 0, 0)
		})
	}
}
