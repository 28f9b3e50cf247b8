// Package attempts tests that a Transport finds, in the context of each request, which send of which operation that is.
package attempts

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// seen are the attempts that a transport has found, with the zero Attempt for a request that is none.
type seen []oncehttp.Attempt

// note returns a function for Wire.Before.
func (s *seen) note(t *testing.T) func(int, *http.Request) {
	return func(_ int, req *http.Request) {
		attempt, found := oncehttp.AttemptFromContext(req.Context())
		if found != (attempt != oncehttp.Attempt{}) {
			t.Errorf("found %v, with %+v", found, attempt)
		}
		*s = append(*s, attempt)
	}
}

// check checks what was found.
func (s *seen) check(t *testing.T, want ...oncehttp.Attempt) {
	t.Helper()
	if !slices.Equal(*s, want) {
		t.Errorf("the transport found\n%+v, want\n%+v", *s, want)
	}
}

// TestAttempts: attempts of a Do, and of a Resume in a later process, each say how often the operation was sent before.
func TestAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var found seen
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503}, {Refused: true}, {Err: wiretest.ErrLost}, {Status: 201}}, Before: found.note(t)}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 3 }))
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		clienttest.Must(t, c.Close())
		time.Sleep(12 * time.Hour)
		c, _ = clienttest.New(t, w, clienttest.On(j))
		clienttest.Pass(t, c)
		found.check(t,
			oncehttp.Attempt{Key: "k", Number: 1},
			oncehttp.Attempt{Key: "k", Number: 2, SendsBefore: 1},
			oncehttp.Attempt{Key: "k", Number: 3, SendsBefore: 2},
			oncehttp.Attempt{Key: "k", Number: 1, SendsBefore: 2, Resumed: true}, // the third was not sent
			oncehttp.Attempt{Key: "k", Number: 2, SendsBefore: 3, Resumed: true},
		)
	})
}

// TestHop: a redirect belongs to its attempt, and is a send of its own.
func TestHop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var found seen
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 307, Header: "Location: /elsewhere"}, {Status: 201}}, Before: found.note(t)}
		c, _ := clienttest.New(t, w, nil)
		clienttest.Do(t, c, clienttest.Post(t, "{}"), "k")
		found.check(t, oncehttp.Attempt{Key: "k", Number: 1}, oncehttp.Attempt{Key: "k", Number: 1, SendsBefore: 1})
	})
}

// TestEarlierProcess: what another process has only enqueued was not sent; what one may have sent before it died counts as one send.
func TestEarlierProcess(t *testing.T) {
	t.Parallel()
	for _, died := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var found seen
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}, Before: found.note(t)}
			c, j := clienttest.New(t, w, nil)
			rec, err := c.Prepare(clienttest.Post(t, "{}"), "k")
			clienttest.Must(t, err)
			want := oncehttp.Attempt{Key: "k", Number: 1, Resumed: true}
			if died {
				rec.MaybeSent, rec.FirstSent, want.SendsBefore = true, rec.Created, 1
			}
			if _, _, err := j.Begin(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			clienttest.Pass(t, c)
			found.check(t, want)
		})
	}
}

// TestOtherRequests: a lookup is no attempt, nor is what passes through; and neither is one of an operation around it.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var found seen
		inside := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 409, Body: wiretest.AlreadyDone}, {Status: 200, Body: `{"id":"PM1","amount":1}`}, {Status: 200}}, Before: found.note(t)}
		inner, _ := clienttest.New(t, inside, func(cfg *oncehttp.Config) { cfg.Profile = profile.GoCardless() })
		around := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		around.Before = func(_ int, req *http.Request) {
			clienttest.Do(t, inner, clienttest.Post(t, `{"amount":1}`).WithContext(req.Context()), "inner")
		}
		outer, _ := clienttest.New(t, around, nil)
		clienttest.Do(t, outer, clienttest.Post(t, "{}"), "outer")
		resp, err := inner.Do(clienttest.Request(t, http.MethodGet, "https://api.example.com/payments", ""))
		clienttest.Must(t, err)
		clienttest.Must(t, resp.Body.Close())
		found.check(t, oncehttp.Attempt{Key: "inner", Number: 1}, oncehttp.Attempt{}, oncehttp.Attempt{})
	})
}

// TestNoAttempt: a context of a user's own has none; and what an attempt's context has of the caller is there.
func TestContext(t *testing.T) {
	t.Parallel()
	if _, found := oncehttp.AttemptFromContext(t.Context()); found {
		t.Error("a context of its own has an attempt")
	}
	type own struct{}
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
	w.Before = func(_ int, req *http.Request) {
		if req.Context().Value(own{}) != "value" {
			t.Error("the caller's value is gone")
		}
		child, cancel := context.WithCancel(req.Context())
		defer cancel()
		if attempt, found := oncehttp.AttemptFromContext(child); !found || attempt.Key != "k" {
			t.Errorf("below it there is %+v, %v", attempt, found)
		}
	}
	c, j := clienttest.New(t, w, nil)
	req := clienttest.Post(t, "{}")
	clienttest.Do(t, c, req.WithContext(context.WithValue(req.Context(), own{}, "value")), "k")
	if rec, err := j.Get(t.Context(), persist.ID{Account: persist.Account(""), Key: "k"}); err != nil || rec.Sends != 1 {
		t.Errorf("%d sends, %v", rec.Sends, err)
	}
}
