// Package token_test holds the promises for tokens that an API hands out: no operation is sent under a second one.
package token_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// wantTokens checks what the server did, and that the client broke no rule.
func wantTokens(t *testing.T, s *mockserver.Server, tokens, sent, took int) {
	t.Helper()
	snapshot := s.Ledger().Snapshot()
	if s.Tokens() != tokens || snapshot.Sends != sent || snapshot.Effects != took || s.Err() != nil {
		t.Errorf("%d tokens, %d sends, %d effects, %v; want %d, %d, %d", s.Tokens(), snapshot.Sends, snapshot.Effects, s.Err(), tokens, sent, took)
	}
}

// isOperation reports whether a request is for the order and not for a token.
func isOperation(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/payments") }

// TestToken: the order's own key names the record, and is not sent; the token that the server hands out is. The same
// order asked for again is answered from the journal.
func TestToken(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		server, transport := servertest.Tickets(t, nil)
		c, _ := clienttest.New(t, transport, clienttest.On(j, servertest.WithTickets))
		for range 2 {
			if resp, err := c.DoKey(servertest.Pay(t, servertest.Order), "order-1"); err != nil || resp.StatusCode != 201 {
				t.Fatalf("%v", err)
			}
		}
		wantTokens(t, server, 1, 1, 1)
		rec := clienttest.Lookup(t, c, "order-1")
		if rec.Token == "" || rec.KeyOnWire() != rec.Token || server.Ledger().Effects(rec.Token) != 1 || server.Ledger().Sends("order-1") != 0 {
			t.Errorf("token %q, %d effects of it", rec.Token, server.Ledger().Effects(rec.Token))
		}
		if resp, err := c.Do(servertest.Pay(t, `{"reference":"o2"}`)); err != nil || oncehttp.ResultOf(resp).Key == "" {
			t.Errorf("without a key: %v", err)
		}
		wantTokens(t, server, 2, 2, 2)
	})
}

// TestTokenOverLoopback: the same on real connections, by Enqueue and Run, with answers lost on both kinds of requests.
func TestTokenOverLoopback(t *testing.T) {
	t.Parallel()
	server := mockserver.New(mockserver.Config{
		Profile: servertest.Ticketed(), OperationPointer: "/reference", RequireKey: true,
		TokenScript: []mockserver.Fault{{Kind: mockserver.DropAfter}, {Kind: mockserver.Answer, Status: 503}},
		Script:      []mockserver.Fault{{Kind: mockserver.DropAfter}, {Kind: mockserver.CutBody}},
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	c, err := oncehttp.Open(filepath.Join(testrun.Dir(t), "j.db"), oncehttp.Config{
		Profile: servertest.Ticketed(), Retry: oncehttp.Policy{MinDelay: 1, MaxDelay: 1, AttemptTimeout: 10 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.Enqueue(clienttest.Request(t, "POST", server.URL()+"/payments", servertest.Order), "order-1"); err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Resume(t.Context()) {
		if err != nil {
			t.Error(err)
		}
	}
	if rec := clienttest.Lookup(t, c, "order-1"); rec.State != persist.StateConfirmed || rec.Sends != 3 {
		t.Errorf("%v after %d sends", rec.State, rec.Sends)
	}
	wantTokens(t, server, 2, 3, 1)
}

// TestLostTokens: a lost answer to the request for a token, and one without a token, cost a token at most. Where none can
// be had, nothing happened, nothing is left, and the key can be used again.
func TestLostTokens(t *testing.T) {
	t.Parallel()
	lost, down := mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.Answer, Status: 503}
	no := mockserver.Fault{Kind: mockserver.Answer, Status: 404}
	for _, c := range []struct {
		name   string
		script []mockserver.Fault
		tokens int // handed out during the first call
		fails  bool
	}{
		{"lost once", []mockserver.Fault{lost}, 2, false},
		{"down, then lost", []mockserver.Fault{down, lost}, 2, false},
		{"lost always", []mockserver.Fault{lost, lost, lost}, 3, true},
		{"down", []mockserver.Fault{down, down, down}, 0, true},
		{"there are none", []mockserver.Fault{no}, 0, true},
		{"an answer without a token", []mockserver.Fault{{Kind: mockserver.Answer, Status: 200, Body: `{"data":{"token":null}}`}}, 0, true},
		{"a token that no header takes", []mockserver.Fault{{Kind: mockserver.Answer, Status: 200, Body: `{"data":{"token":"a b"}}`}}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, transport := servertest.Tickets(t, func(cfg *mockserver.Config) { cfg.TokenScript = c.script })
				client, _ := clienttest.New(t, transport, func(cfg *oncehttp.Config) { servertest.WithTickets(cfg); cfg.Retry.MaxAttempts = 3 })
				_, err := client.DoKey(servertest.Pay(t, servertest.Order), "order-1")
				if !c.fails {
					if err != nil {
						t.Fatal(err)
					}
					wantTokens(t, server, c.tokens, 1, 1)
					return
				}
				clienttest.ExactlyOne(t, err)
				if !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrNotSent) || !strings.Contains(err.Error(), "no token") {
					t.Errorf("%v, want ErrNoEffect and ErrNotSent", err)
				}
				if _, err := client.Lookup(t.Context(), "order-1"); !errors.Is(err, persist.ErrNotFound) {
					t.Errorf("a record is left: %v", err)
				}
				wantTokens(t, server, c.tokens, 0, 0)
				if _, err := client.DoKey(servertest.Pay(t, servertest.Order), "order-1"); err != nil {
					t.Errorf("once more: %v", err)
				}
				wantTokens(t, server, c.tokens+1, 1, 1)
			})
		})
	}
}

// TestTokenIsNeverReplaced: once an operation may have been sent, it keeps its token, also when that has expired or was
// forgotten: the outcome stays unknown, until the record is held. No second token, no second effect.
func TestTokenIsNeverReplaced(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]mockserver.Fault{"it took effect": {Kind: mockserver.DropAfter}, "it did not": {Kind: mockserver.DropBefore}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, transport := servertest.Tickets(t, func(cfg *mockserver.Config) {
					cfg.Script, cfg.TokenLife = []mockserver.Fault{fault}, time.Minute
				})
				c, _ := clienttest.New(t, transport, func(cfg *oncehttp.Config) { servertest.WithTickets(cfg); clienttest.OneAttempt(cfg) })
				_, err := c.DoKey(servertest.Pay(t, servertest.Order), "order-1")
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				server.Expire()
				took := servertest.Effects(server)
				for range 3 {
					if _, err := c.DoKey(servertest.Pay(t, servertest.Order), "order-1"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("with a token of no use: %v", err)
					}
				}
				wantTokens(t, server, 1, 4, took)
				time.Sleep(24 * time.Hour)
				_, err = c.DoKey(servertest.Pay(t, servertest.Order), "order-1")
				if rec := clienttest.Lookup(t, c, "order-1"); !errors.Is(err, oncehttp.ErrKeyExpired) || rec.State != persist.StateHeld {
					t.Errorf("past the window: %v, %v", err, rec.State)
				}
			})
		})
	}
}

// TestUnusedTokenIsReplaced: an operation that provably was not sent gets a new token, since the old one may have
// expired; one that the server has refused keeps its token.
func TestUnusedTokenIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, transport := servertest.Tickets(t, func(cfg *mockserver.Config) {
			cfg.Script = []mockserver.Fault{{Kind: mockserver.Answer, Status: 429}}
			cfg.TokenLife = 2 * time.Hour
		})
		down := true
		wire := &wiretest.Crashing{Through: wiretest.Func(func(req *http.Request) (*http.Response, error) {
			if down && isOperation(req) {
				w := wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}}}
				return w.RoundTrip(req)
			}
			return transport.RoundTrip(req)
		})}
		c, _ := clienttest.New(t, wire, func(cfg *oncehttp.Config) { servertest.WithTickets(cfg); clienttest.OneAttempt(cfg) })
		if err := c.Enqueue(servertest.Pay(t, servertest.Order), "order-1"); err != nil {
			t.Fatal(err)
		}
		pass := func() persist.Record {
			for range c.Resume(t.Context()) {
				continue
			}
			time.Sleep(time.Hour)
			return clienttest.Lookup(t, c, "order-1")
		}
		if rec := pass(); rec.MaybeSent || rec.Sends != 0 || rec.State != persist.StatePending {
			t.Fatalf("not sent: %+v", rec)
		}
		down = false
		refused := pass()
		if refused.MaybeSent || refused.Sends != 1 || server.Tokens() != 2 {
			t.Errorf("refused: maybe sent %t, %d sends, %d tokens", refused.MaybeSent, refused.Sends, server.Tokens())
		}
		if rec := pass(); rec.State != persist.StateConfirmed || rec.Token != refused.Token {
			t.Errorf("%v, token %q, before %q", rec.State, rec.Token, refused.Token)
		}
		wantTokens(t, server, 2, 2, 1)
	})
}

// TestTokenMisuse: a request that brings a key in the token's header, and configurations that cannot work.
func TestTokenMisuse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, transport := servertest.Tickets(t, nil)
		c, _ := clienttest.New(t, transport, servertest.WithTickets)
		own := servertest.Pay(t, servertest.Order)
		own.Header.Set("Idempotency-Key", "mine")
		_, err := c.Do(own)
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("a key of the request's own: %v", err)
		}
		wantTokens(t, server, 0, 0, 0)
	})
	for want, change := range map[string]func(*profile.Profile){
		"Config.Token": func(p *profile.Profile) { p.Token = &profile.Token{} },
		"header":       func(p *profile.Profile) { p.Carrier = profile.Carrier{Place: profile.Body, Name: "/key"} },
		"method":       func(p *profile.Profile) { p.Token.Method = "PUT" },
		"JSON pointer": func(p *profile.Profile) { p.Token.Pointer = "token" },
		"starts with":  func(p *profile.Profile) { p.Token.Path = "https://elsewhere.example/tokens" },
	} {
		p := servertest.Ticketed()
		change(p)
		if _, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Profile: p}); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want ErrConfig with %q", err, want)
		}
	}
}

// TestTokenTooLate: an operation whose process died before it had a token is sent no later than any other, then held.
func TestTokenTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, transport := servertest.Tickets(t, nil)
		j := memory.New()
		var left persist.Journal
		c, _ := clienttest.New(t, &wiretest.Crashing{Through: transport, At: func(req *http.Request) {
			if !isOperation(req) {
				left = journaltest.Survivors(t, j)
			}
		}}, clienttest.On(j, servertest.WithTickets))
		if _, err := c.DoKey(servertest.Pay(t, servertest.Order), "order-1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Hour)
		next, _ := clienttest.New(t, transport, clienttest.On(left, servertest.WithTickets))
		for range next.Resume(t.Context()) {
			continue
		}
		if rec := clienttest.Lookup(t, next, "order-1"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldExpired || rec.MaybeSent {
			t.Errorf("%v for %q, maybe sent %t", rec.State, rec.HoldReason, rec.MaybeSent)
		}
		wantTokens(t, server, 1, 1, 1)
	})
}
