package declared_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// loggedTo sets a Logger that writes to a buffer.
func loggedTo(to *bytes.Buffer) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.Logger = slog.New(slog.NewTextHandler(to, nil)) }
}

// TestPassingIsToldOnce: a request that passes and that a key could protect is told once for each method, host and path, without what
// may be an id or a secret there, and with the line that would protect it.
func TestPassingIsToldOnce(t *testing.T) {
	t.Parallel()
	const form, json = "application/x-www-form-urlencoded", "application/json"
	rows := []struct {
		name     string
		config   func(*oncehttp.Config)
		requests []*http.Request
		want     []string // words of the lines, in order
	}{
		{"a path", undeclared, []*http.Request{as("POST", json, "{}")(clienttest.Post(t, "")), as("POST", json, "{}")(clienttest.Post(t, ""))}, []string{"oncehttp.Writes"}},
		{"ids", undeclared, []*http.Request{
			clienttest.Request(t, "POST", "https://api.example.com/v1/orders/12/items/aaaaaaaaaaaaaaaaaaaaa?token=x", "{}"),
			clienttest.Request(t, "POST", "https://api.example.com/v1/orders/13/items/bbbbbbbbbbbbbbbbbbbbb", "{}"),
			clienttest.Request(t, "PATCH", "https://api.example.com/v1/orders/13", "{}"),
			clienttest.Request(t, "POST", "https://other.example.com/v1/orders/13", "{}"),
		}, []string{"POST https://api.example.com/{}/orders/{}/items/{}", "PATCH https://api.example.com/{}/orders/{}", "https://other.example.com/{}/orders/{}"}},
		{"what no key protects", undeclared, []*http.Request{
			as("GET", json, "")(clienttest.Post(t, "")), as("PUT", json, "{}")(clienttest.Post(t, "")), as("POST", form, "grant_type=password")(clienttest.Post(t, "")),
		}, nil},
		{"a token first", undeclared, []*http.Request{as("POST", form, "grant_type=password")(clienttest.Post(t, "")), as("POST", json, "{}")(clienttest.Post(t, ""))}, []string{"oncehttp.Writes"}},
		{"another API's key", undeclared, []*http.Request{having("PayPal-Request-Id", "k")(as("PUT", json, "{}")(clienttest.Post(t, "")))}, []string{"Paypal-Request-Id"}},
		{"a key of the context", undeclared, []*http.Request{inContext(as("PUT", json, "{}")(clienttest.Post(t, "")))}, []string{"its context has a key"}},
		{"what Operation leaves out", operations(func(*http.Request) bool { return false }), []*http.Request{as("POST", json, "{}")(clienttest.Post(t, ""))}, []string{"Config.Operation does not name it"}},
		{"an operation", operations(oncehttp.Writes), []*http.Request{as("POST", json, "{}")(clienttest.Post(t, ""))}, nil},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}, clienttest.Together(r.config, loggedTo(&log)))
				for _, req := range r.requests {
					if _, err := c.Transport().RoundTrip(req); err != nil {
						t.Fatal(err)
					}
				}
				lines := strings.Split(strings.TrimSpace(log.String()), "\n")
				if log.Len() == 0 {
					lines = nil
				}
				if len(lines) != len(r.want) {
					t.Fatalf("%d lines, want %d:\n%s", len(lines), len(r.want), &log)
				}
				for i, words := range r.want {
					if !strings.Contains(lines[i], words) || strings.Contains(lines[i], "token") {
						t.Errorf("%s; want %q in it", lines[i], words)
					}
				}
			})
		})
	}
}

// TestPassingIsToldBounded: at most 100 lines, and the last says so.
func TestPassingIsToldBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}, clienttest.Together(undeclared, loggedTo(&log)))
		for i := range 130 {
			path := strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j").Replace(fmt.Sprint(i))
			if _, err := c.Transport().RoundTrip(clienttest.Request(t, "POST", "https://api.example.com/"+path, "{}")); err != nil {
				t.Fatal(err)
			}
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 100 || !strings.Contains(lines[99], "further requests are not named") || strings.Contains(lines[98], "further") {
			t.Errorf("%d lines, the last: %s", len(lines), lines[len(lines)-1])
		}
	})
}

// TestNewTellsOfUndeclaredOperations: where the journal has operations of Transport without a key in doubt, and nothing declares such
// requests now.
func TestNewTellsOfUndeclaredOperations(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		left, now func(*oncehttp.Config)
		key       bool
		told      bool
	}{
		"nothing declares":    {now: undeclared, told: true},
		"Operation declares":  {now: operations(oncehttp.Writes)},
		"Methods declares":    {now: methods("POST")},
		"NewKey declares":     {now: clienttest.Together(undeclared, making("made", nil))},
		"they have a key":     {now: undeclared, key: true},
		"another account":     {now: clienttest.Together(undeclared, func(cfg *oncehttp.Config) { cfg.Account = "other" })},
		"under a profile too": {now: clienttest.Together(undeclared, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }), told: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
				j := memory.New()
				before, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				req := clienttest.Post(t, "{}")
				if r.key {
					req.Header.Set("Idempotency-Key", "k")
				}
				if _, err := before.Transport().RoundTrip(req); err == nil {
					t.Fatal("an answer")
				}
				clienttest.New(t, w, clienttest.On(j, r.now, loggedTo(&log)))
				if told := strings.Contains(log.String(), "oncehttp.Writes"); told != r.told {
					t.Errorf("told %t, want %t: %s", told, r.told, &log)
				}
			})
		})
	}
}
