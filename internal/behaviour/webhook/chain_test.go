package webhook_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// redriven is an operation k of a reference that was refused, and its successor k:gen=2, sent as often as said, with this reply.
func redriven(t *testing.T, a *api, sends int, reply wiretest.Reply) (*oncehttp.Client, *clienttest.Events, http.Handler, func() int) {
	t.Helper()
	var mu sync.Mutex
	sent := 0
	c, events, h := a.client(t, func(cfg *oncehttp.Config) {
		cfg.Transport = wiretest.Func(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			sent++
			if sent == 1 {
				return (&wiretest.Wire{Replies: []wiretest.Reply{{Status: 404, Body: `{"error":"no route"}`}}}).RoundTrip(req)
			}
			return (&wiretest.Wire{Replies: []wiretest.Reply{reply}}).RoundTrip(req)
		})
	})
	req := clienttest.Request(t, http.MethodPost, "https://api.example.com"+a.path, a.request("o1"))
	clienttest.Must(t, c.Enqueue(req, "k"))
	clienttest.Resume(t, c)
	if rec := clienttest.Lookup(t, c, "k"); rec.FinalEffect() != persist.EffectRefused {
		t.Fatalf("%v %q", rec.State, rec.FinalEffect())
	}
	if _, err := c.Redrive(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	for range sends {
		for range c.Resume(t.Context()) {
			continue
		}
	}
	return c, events, h, func() int { mu.Lock(); defer mu.Unlock(); return sent }
}

// TestChain: two operations that replace each other have one reference. An event of it is about the one that was sent: about the old one while the new one was not, and then
// the new one is held. Of two that were sent, it settles the last, which is sent no more, or contradicts its end, or agrees with its success.
func TestChain(t *testing.T) {
	t.Parallel()
	ok, refused := wiretest.Reply{Status: 200, Body: `{"id":"x"}`}, wiretest.Reply{Status: 404, Body: `{"error":"no route"}`}
	for _, i := range []int{1, 2} { // Square's key stands in the body: it is not redriven
		a := apis()[i]
		event := func(t *testing.T, h http.Handler) {
			body, header := a.signed(t, a.event("o1"))
			if code := deliver(t, h, header, body); code != http.StatusOK {
				t.Errorf("answered %d, want 200", code)
			}
		}
		t.Run(a.name+", not sent yet", func(t *testing.T) {
			t.Parallel()
			c, events, h, sent := redriven(t, &a, 0, ok)
			event(t, h)
			for range c.Resume(t.Context()) {
				continue
			}
			old, rec := clienttest.Lookup(t, c, "k"), clienttest.Lookup(t, c, "k:gen=2")
			if old.Evidence == nil || rec.Evidence != nil || rec.HoldReason != persist.HoldPredecessor || sent() != 1 || len(events.Of(oncehttp.EventContradicted)) != 1 {
				t.Errorf("old: %v; new: %v %q, after %d sends", old.Evidence, rec.State, rec.HoldReason, sent())
			}
		})
		t.Run(a.name+", in doubt", func(t *testing.T) {
			t.Parallel()
			c, _, h, sent := redriven(t, &a, 1, wiretest.Reply{Err: wiretest.ErrLost})
			event(t, h)
			settled(t, c, "k:gen=2")
			if old := clienttest.Lookup(t, c, "k"); old.Evidence != nil || sent() != 2 {
				t.Errorf("old: %v, %d sends", old.Evidence, sent())
			}
		})
		t.Run(a.name+", a success", func(t *testing.T) {
			t.Parallel()
			c, events, h, _ := redriven(t, &a, 1, ok)
			event(t, h)
			if n := len(events.Of(oncehttp.EventContradicted)); n != 0 || clienttest.Lookup(t, c, "k").Evidence != nil {
				t.Errorf("%d events contradicted, want none", n)
			}
		})
		t.Run(a.name+", refused again", func(t *testing.T) {
			t.Parallel()
			c, events, h, _ := redriven(t, &a, 1, refused)
			event(t, h)
			if n := len(events.Of(oncehttp.EventContradicted)); n != 1 || clienttest.Lookup(t, c, "k:gen=2").Evidence == nil {
				t.Errorf("%d events contradicted, want one of the last", n)
			}
			if _, err := c.Redrive(t.Context(), "k:gen=2"); err == nil {
				t.Error("it is redriven once more")
			}
		})
		t.Run(a.name+", and another one", func(t *testing.T) {
			t.Parallel()
			c, events, h, _ := redriven(t, &a, 1, wiretest.Reply{Err: wiretest.ErrLost})
			req := clienttest.Request(t, http.MethodPost, "https://api.example.com"+a.path, strings.Replace(a.request("o1"), "{", "{ ", 1))
			if _, err := c.DoKey(req, "l"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatal(err)
			}
			event(t, h)
			if rec := clienttest.Lookup(t, c, "k:gen=2"); rec.Evidence != nil || len(events.Of(oncehttp.EventUnproved)) == 0 {
				t.Errorf("evidence %v, want none, and somebody told", rec.Evidence)
			}
		})
	}
}
