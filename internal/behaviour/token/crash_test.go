package token_test

import (
	"errors"
	"net/http"
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
			synctest.Test(t, func(t *testing.T) {
				server, transport := servertest.Tickets(t, func(cfg *mockserver.Config) { cfg.TokenLife = 2 * time.Hour })
				var left persist.Journal
				j := memory.New()
				dying := &wiretest.Crashing{Through: transport, Lose: c.when}
				dying.At = func(req *http.Request) {
					if c.when(req) {
						left = journaltest.Survivors(t, j)
					}
				}
				first, _ := clienttest.New(t, dying, clienttest.On(j, servertest.WithTickets, clienttest.OneAttempt))
				_, _ = first.DoKey(servertest.Pay(t, servertest.Order), "order-1")
				rec, err := left.Get(t.Context(), persist.ID{Key: "order-1"})
				if err != nil || rec.MaybeSent != (rec.Token != "") || rec.MaybeSent == rec.FirstSent.IsZero() {
					t.Fatalf("what is left: %+v, %v", rec, err)
				}
				time.Sleep(time.Hour) // the dead process's lease ends
				next, _ := clienttest.New(t, transport, clienttest.On(left, servertest.WithTickets))
				for _, err := range next.Resume(t.Context()) {
					if err != nil {
						t.Error(err)
					}
				}
				after := clienttest.Lookup(t, next, "order-1")
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
		break_ func(*journaltest.Faulty)
		is     error
	}{
		{"not written", func(j *journaltest.Faulty) { j.OnUpdate = journaltest.Fails(journaltest.ErrDisk) }, oncehttp.ErrNoEffect},
		{"nor forgotten", func(j *journaltest.Faulty) {
			j.OnUpdate, j.OnForget = journaltest.Fails(journaltest.ErrDisk), journaltest.Fails(journaltest.ErrDisk)
		}, oncehttp.ErrOutcomeUnknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, transport := servertest.Tickets(t, nil)
			j := &journaltest.Faulty{Journal: memory.New()}
			client, _ := clienttest.New(t, transport, clienttest.On(j, servertest.WithTickets))
			c.break_(j)
			_, err := client.DoKey(servertest.Pay(t, servertest.Order), "order-1")
			if clienttest.ExactlyOne(t, err); !errors.Is(err, c.is) {
				t.Errorf("%s: %v, want %v", c.name, err, c.is)
			}
			wantTokens(t, server, 1, 0, 0)
		})
	}
}
