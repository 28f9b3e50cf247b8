package oncehttp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// keyless is the configuration for an API that takes no key.
func keyless(cfg *oncehttp.Config) {
	cfg.Profile = profile.None()
	cfg.Profile.NotActed = profile.NotActed{Again: []int{429}} // which is not heeded
	cfg.Profile.ShouldRetry = profile.ShouldRetry{Header: "X-Should-Retry", Yes: "true"}
}

// keyNowhere fails the test if anything that was sent holds the key.
func keyNowhere(t *testing.T, w *wire) {
	t.Helper()
	for _, s := range w.all() {
		for name, lines := range s.header {
			if strings.Contains(strings.Join(lines, " "), "secret-key") {
				t.Errorf("the key was sent in %s", name)
			}
		}
		if strings.Contains(s.url+s.body, "secret-key") {
			t.Error("the key was sent")
		}
	}
}

// TestNone: where an API takes no key, an operation is sent again only if nothing of it was sent, and what is not known
// is held. Whatever the client is asked afterwards, it sends no more.
func TestNone(t *testing.T) {
	t.Parallel()
	ok := reply{status: 201, body: "{}"}
	for name, r := range map[string]struct {
		replies []reply
		status  int // 0: an error
		sends   int
		is      error
		state   persist.State
	}{
		"done":                          {[]reply{ok}, 201, 1, nil, persist.StateConfirmed},
		"no connection, then one":       {[]reply{{refused: true}, {refused: true}, ok}, 201, 3, nil, persist.StateConfirmed},
		"no connection, then lost":      {[]reply{{refused: true}, {err: errLost}, ok}, 0, 2, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"lost":                          {[]reply{{err: errLost}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"no trace":                      {[]reply{{refused: true, silent: true}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"cut":                           {[]reply{{status: 200, body: "{", cut: true}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"500":                           {[]reply{{status: 500}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"503 with Retry-After":          {[]reply{{status: 503, header: "Retry-After: 1"}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"408":                           {[]reply{{status: 408}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"409":                           {[]reply{{status: 409}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"302":                           {[]reply{{status: 302, header: "Location: /"}, ok}, 0, 1, oncehttp.ErrRedirected, persist.StateHeld},
		"500, said to be worth another": {[]reply{{status: 500, header: "X-Should-Retry: true"}, ok}, 0, 1, oncehttp.ErrOutcomeUnknown, persist.StateHeld},
		"422, said to be worth another": {[]reply{{status: 422, header: "X-Should-Retry: true"}, ok}, 422, 1, nil, persist.StateConfirmed},
		"429":                           {[]reply{{status: 429}, ok}, 0, 1, oncehttp.ErrRefused, forgotten},
		"422":                           {[]reply{{status: 422, body: "{}"}, ok}, 422, 1, nil, persist.StateConfirmed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: r.replies}
				c, _ := newClient(t, w, keyless)
				for call := range 2 { // the second time the record answers
					resp, err := c.DoKey(post(t, `{"amount":1}`), "secret-key")
					if call == 1 && r.is != nil {
						r.is = oncehttp.ErrHeld
					}
					if (err == nil) != (r.status != 0) || err == nil && resp.StatusCode != r.status || !errors.Is(err, r.is) {
						t.Fatalf("%v, want status %d, %v", err, r.status, r.is)
					}
					if r.state == forgotten {
						break
					}
				}
				for _, err := range c.Resume(t.Context()) {
					t.Errorf("Resume yields %v", err)
				}
				if w.count() != r.sends {
					t.Errorf("%d sends, want %d", w.count(), r.sends)
				}
				keyNowhere(t, w)
				if r.state == forgotten {
					return
				}
				rec := lookup(t, c, "secret-key")
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
			_, err := c.DoKey(post(t, "{}"), "secret-key")
			if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrHeld) {
				t.Errorf("Do: %v", err)
			}
			exactlyOne(t, err)
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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{status: 201, body: "{}"}}}
				c, j := newClient(t, w, keyless)
				rec, err := c.Prepare(post(t, "{}"), "secret-key")
				if err != nil {
					t.Fatal(err)
				}
				rec.MaybeSent, rec.FirstSent = true, time.Now().Round(0)
				if _, _, err := j.Begin(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				find(t, c)
				if got := lookup(t, c, "secret-key"); got.State != persist.StateHeld || got.HoldReason != persist.HoldNoKey || w.count() != 0 {
					t.Errorf("record %v (%s) after %d sends", got.State, got.HoldReason, w.count())
				}
				if err := c.Enqueue(post(t, "{}"), "other"); err != nil {
					t.Fatal(err)
				}
				for _, err := range c.Resume(t.Context()) {
					if err != nil {
						t.Error(err)
					}
				}
				if got := lookup(t, c, "other"); got.State != persist.StateConfirmed || w.count() != 1 {
					t.Errorf("enqueued: %v after %d sends", got.State, w.count())
				}
			})
		})
	}
}

// TestNoneNeverAsksAgain: an answer that is too large to keep is gone; the server is not asked for it a second time. A
// request that carries a key relies on what this API would not see.
func TestNoneNeverAsksAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 200, body: strings.Repeat("x", 500)}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) { keyless(cfg); cfg.MaxResponseBytes = 100 })
		resp, err := c.DoKey(post(t, "{}"), "k")
		if err != nil || len(read(t, resp)) != 500 {
			t.Fatal(err)
		}
		if _, err := c.DoKey(post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrAnswerGone) || w.count() != 1 {
			t.Errorf("%v after %d sends", err, w.count())
		}
		req := post(t, "{}")
		req.Header.Set("Idempotency-Key", "k2")
		if _, err := c.Do(req); !errors.Is(err, oncehttp.ErrKeyInvalid) || w.count() != 1 {
			t.Errorf("a request with a key: %v after %d sends", err, w.count())
		}
		signed := func(req *http.Request) error { req.Header.Set("X-Idempotency-Key", "k3"); return nil }
		c, _ = newClient(t, w, func(cfg *oncehttp.Config) { keyless(cfg); cfg.Authorize = signed })
		if _, err := c.DoKey(post(t, "{}"), "k3"); err == nil || w.count() != 1 {
			t.Errorf("a key from Authorize: %v after %d sends", err, w.count())
		}
	})
}
