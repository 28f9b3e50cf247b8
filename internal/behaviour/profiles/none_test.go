package profiles_test

import (
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
)

// keyNowhere fails the test if anything that was sent holds the key.
func keyNowhere(t *testing.T, w *wiretest.Wire) {
	t.Helper()
	for _, s := range w.All() {
		for name, lines := range s.Header {
			if strings.Contains(strings.Join(lines, " "), "secret-key") {
				t.Errorf("the key was sent in %s", name)
			}
		}
		if strings.Contains(s.URL+s.Body, "secret-key") {
			t.Error("the key was sent")
		}
	}
}

// TestNone: where an API takes no key, an operation is sent again only if nothing of it was sent, and what is not known
// is held. Whatever the client is asked afterwards, it sends no more.
func TestNone(t *testing.T) {
	t.Parallel()
	ok := wiretest.Reply{Status: 201, Body: "{}"}
	for name, r := range map[string]struct {
		replies []wiretest.Reply
		status  int // 0: an error
		sends   int
		is      error
		state   persist.State
	}{
		"done":                          {[]wiretest.Reply{ok}, 201, 1, nil, persist.StateConfirmed},
		"no connection, then one":       {[]wiretest.Reply{{Refused: true}, {Refused: true}, ok}, 201, 3, nil, persist.StateConfirmed},
		"no connection, then lost":      {[]wiretest.Reply{{Refused: true}, {Err: wiretest.ErrLost}, ok}, 0, 2, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"lost":                          {[]wiretest.Reply{{Err: wiretest.ErrLost}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"no trace":                      {[]wiretest.Reply{{Refused: true, Silent: true}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"cut":                           {[]wiretest.Reply{{Status: 200, Body: "{", Cut: true}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"500":                           {[]wiretest.Reply{{Status: 500}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"503 with Retry-After":          {[]wiretest.Reply{{Status: 503, Header: "Retry-After: 1"}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"408":                           {[]wiretest.Reply{{Status: 408}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"409":                           {[]wiretest.Reply{{Status: 409}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"302":                           {[]wiretest.Reply{{Status: 302, Header: "Location: /"}, ok}, 0, 1, oncehttp.ErrRedirected, persist.StateHeld},
		"500, said to be worth another": {[]wiretest.Reply{{Status: 500, Header: "X-Should-Retry: true"}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"422, said to be worth another": {[]wiretest.Reply{{Status: 422, Header: "X-Should-Retry: true"}, ok}, 422, 1, nil, persist.StateConfirmed},
		"429":                           {[]wiretest.Reply{{Status: 429}, ok}, 0, 1, oncehttp.ErrRefused, clienttest.Unknown},
		"422":                           {[]wiretest.Reply{{Status: 422, Body: "{}"}, ok}, 422, 1, nil, persist.StateConfirmed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: r.replies}
				c, _ := clienttest.New(t, w, clienttest.TakesNoKey)
				for call := range 2 { // the second time the record answers
					resp, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "secret-key")
					if call == 1 && r.is != nil {
						r.is = oncehttp.ErrHeld
					}
					if (err == nil) != (r.status != 0) || err == nil && resp.StatusCode != r.status || !errors.Is(err, r.is) {
						t.Fatalf("%v, want status %d, %v", err, r.status, r.is)
					}
					if r.state == clienttest.Unknown {
						break
					}
				}
				for _, err := range c.Resume(t.Context()) {
					t.Errorf("Resume yields %v", err)
				}
				if w.Count() != r.sends {
					t.Errorf("%d sends, want %d", w.Count(), r.sends)
				}
				keyNowhere(t, w)
				if r.state == clienttest.Unknown {
					return
				}
				rec := clienttest.Lookup(t, c, "secret-key")
				if rec.State != r.state || r.state == persist.StateHeld && rec.HoldReason != persist.HoldNoKey && name != "302" {
					t.Errorf("record %v (%s), want %v", rec.State, rec.HoldReason, r.state)
				}
			})
		})
	}
}

// TestNoneAfterACrash: a record that may have been sent is held, by whoever finds it, and not sent. One that was only
// enqueued is sent once.
func TestNoneAfterACrash(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func(*testing.T, *oncehttp.Client){
		"Do": func(t *testing.T, c *oncehttp.Client) {
			_, err := c.DoKey(clienttest.Post(t, "{}"), "secret-key")
			if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrHeld) {
				t.Errorf("Do: %v", err)
			}
			clienttest.ExactlyOne(t, err)
		},
		"Resume": func(t *testing.T, c *oncehttp.Client) {
			yielded := 0
			for _, err := range c.Resume(t.Context()) {
				if yielded++; !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrHeld) {
					t.Errorf("Resume: %v", err)
				}
			}
			if yielded != 1 {
				t.Errorf("Resume yields %d records", yielded)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
				c, j := clienttest.New(t, w, clienttest.TakesNoKey)
				rec, err := c.Prepare(clienttest.Post(t, "{}"), "secret-key")
				if err != nil {
					t.Fatal(err)
				}
				rec.MaybeSent, rec.FirstSent = true, time.Now().Round(0)
				if _, _, err := j.Begin(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				find(t, c)
				if got := clienttest.Lookup(t, c, "secret-key"); got.State != persist.StateHeld || got.HoldReason != persist.HoldNoKey || w.Count() != 0 {
					t.Errorf("record %v (%s) after %d sends", got.State, got.HoldReason, w.Count())
				}
				if err := c.Enqueue(clienttest.Post(t, "{}"), "other"); err != nil {
					t.Fatal(err)
				}
				for _, err := range c.Resume(t.Context()) {
					if err != nil {
						t.Error(err)
					}
				}
				if got := clienttest.Lookup(t, c, "other"); got.State != persist.StateConfirmed || w.Count() != 1 {
					t.Errorf("enqueued: %v after %d sends", got.State, w.Count())
				}
			})
		})
	}
}

// TestNoneNeverAsksAgain: an answer that is too large to keep is gone; the server is not asked for it a second time. A
// request that carries a key relies on what this API would not see.
func TestNoneNeverAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: strings.Repeat("x", 500)}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { clienttest.TakesNoKey(cfg); cfg.MaxResponseBytes = 100 })
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if err != nil || len(clienttest.Read(t, resp)) != 500 {
			t.Fatal(err)
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrAnswerGone) || w.Count() != 1 {
			t.Errorf("%v after %d sends", err, w.Count())
		}
		req := clienttest.Post(t, "{}")
		req.Header.Set("Idempotency-Key", "k2")
		if _, err := c.Do(req); !errors.Is(err, oncehttp.ErrKeyInvalid) || w.Count() != 1 {
			t.Errorf("a request with a key: %v after %d sends", err, w.Count())
		}
		signed := func(req *http.Request) error { req.Header.Set("X-Idempotency-Key", "k3"); return nil }
		c, _ = clienttest.New(t, w, func(cfg *oncehttp.Config) { clienttest.TakesNoKey(cfg); cfg.Authorize = signed })
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k3"); err == nil || w.Count() != 1 {
			t.Errorf("a key from Authorize: %v after %d sends", err, w.Count())
		}
	})
}
