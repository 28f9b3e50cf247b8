package noeffect_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// mayRetry is a declined card that Stripe allows to be tried again with the same key.
func mayRetry(body string) wiretest.Reply {
	return wiretest.Reply{Status: 402, Header: "Stripe-Should-Retry: true", Body: body}
}

func stripe(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }

// TestFinalAnswerStandsUntilAnAttemptSaysMore: after a final answer that the server allowed to try again, an
// attempt that was not sent or that the server refused changes nothing, and another final answer replaces it.
func TestFinalAnswerStandsUntilAnAttemptSaysMore(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		later  []wiretest.Reply
		status int
		body   string
	}{
		"then no connection":             {[]wiretest.Reply{{Refused: true}}, 402, "declined"},
		"then refused":                   {[]wiretest.Reply{{Status: 429}}, 402, "declined"},
		"then refused for good":          {[]wiretest.Reply{{Status: 401}}, 402, "declined"},
		"then declined again":            {[]wiretest.Reply{{Status: 402, Body: "declined twice"}}, 402, "declined twice"},
		"then paid":                      {[]wiretest.Reply{{Status: 429}, {Refused: true}, {Status: 201, Body: "paid"}}, 201, "paid"},
		"declined again, no connection":  {[]wiretest.Reply{mayRetry("declined twice"), {Refused: true}}, 402, "declined twice"},
		"then lost, and a stored answer": {[]wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 402, Header: "Idempotent-Replayed: true", Body: "stored"}}, 402, "stored"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: append([]wiretest.Reply{mayRetry("declined")}, r.later...)}
				c, _ := clienttest.New(t, w, stripe)
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if err != nil {
					t.Fatalf("%v after %d sends, want the %d", err, w.Count(), r.status)
				}
				if got := clienttest.Read(t, resp); resp.StatusCode != r.status || got != r.body {
					t.Errorf("answered %d %q, want %d %q", resp.StatusCode, got, r.status, r.body)
				}
				rec := clienttest.Lookup(t, c, "k")
				if rec.State != persist.StateConfirmed || rec.Answer.Status != r.status || string(rec.Answer.Body) != r.body {
					t.Errorf("record %v with answer %+v, want it confirmed with the %d", rec.State, rec.Answer, r.status)
				}
			})
		})
	}
}

// TestFinalAnswerFallsToALaterDoubt: any other attempt that was handed over makes the outcome unknown.
func TestFinalAnswerFallsToALaterDoubt(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		later []wiretest.Reply
		also  error
		state persist.State
	}{
		"lost":              {[]wiretest.Reply{{Err: wiretest.ErrLost}}, nil, persist.StatePending},
		"cut":               {[]wiretest.Reply{{Status: 402, Body: "decl", Cut: true}}, nil, persist.StatePending},
		"500":               {[]wiretest.Reply{{Status: 500}}, nil, persist.StatePending},
		"in flight":         {[]wiretest.Reply{{Status: 409, Body: `{"error":{"code":"idempotency_key_in_use"}}`}}, oncehttp.ErrInFlight, persist.StatePending},
		"500, 402":          {[]wiretest.Reply{{Status: 500}, {Status: 402}}, nil, persist.StatePending},
		"lost, not sent":    {[]wiretest.Reply{{Err: wiretest.ErrLost}, {Refused: true}}, nil, persist.StatePending},
		"another's key":     {[]wiretest.Reply{{Status: 400, Body: `{"error":{"type":"idempotency_error"}}`}}, oncehttp.ErrKeyReused, persist.StateHeld},
		"redirected":        {[]wiretest.Reply{{Status: 302, Header: "Location: /x"}}, oncehttp.ErrRedirected, persist.StateHeld},
		"redirected by 303": {[]wiretest.Reply{{Status: 303, Header: "Location: https://login.example.com/"}}, oncehttp.ErrRedirected, persist.StateHeld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: append([]wiretest.Reply{mayRetry("declined")}, r.later...)}
				c, _ := clienttest.New(t, w, stripe)
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if err == nil {
					t.Fatalf("answered %d, want an unknown outcome", resp.StatusCode)
				}
				clienttest.ExactlyOne(t, err)
				if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || r.also != nil && !errors.Is(err, r.also) {
					t.Errorf("%v, want an unknown outcome (%v)", err, r.also)
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.State != r.state {
					t.Errorf("record %v, want %v", rec.State, r.state)
				}
			})
		})
	}
}

// TestFinalAnswerStandsWhenTheWindowEnds: no further attempt can be made, since Authorize took all the time that
// the key's window had left.
func TestFinalAnswerStandsWhenTheWindowEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		w := &wiretest.Wire{Replies: []wiretest.Reply{mayRetry("declined")}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Profile = profile.StripeV1()
			cfg.Profile.Window.Floor = time.Hour
			cfg.Authorize = func(*http.Request) error {
				if calls++; calls > 1 {
					time.Sleep(2 * time.Hour)
				}
				return nil
			}
		})
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if err != nil || resp.StatusCode != 402 || w.Count() != 1 {
			t.Errorf("%v after %d sends, want the 402 of the only one", err, w.Count())
		}
	})
}

// TestNotSentNeedsThatNothingWasHandedOver: an operation that the server refused once was sent, whatever became
// of the attempts after it.
func TestNotSentNeedsThatNothingWasHandedOver(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 429, Body: "slow down"}, {Refused: true}}}
			c, _ := clienttest.New(t, w, nil)
			if plain {
				resp, err := c.StandardClient().Do(clienttest.Post(t, "{}"))
				if err != nil || resp.StatusCode != 429 || clienttest.Read(t, resp) != "slow down" {
					t.Errorf("plain HTTP: %v, want the 429", err)
				}
				return
			}
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			clienttest.ExactlyOne(t, err)
			var e *oncehttp.Error
			if !errors.As(err, &e) {
				t.Fatalf("%v", err)
			}
			if errors.Is(err, oncehttp.ErrNotSent) || !errors.Is(err, oncehttp.ErrRefused) || !errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("%v, want refused and no effect", err)
			}
			if e.Sends != 1 || e.Outcome != oncehttp.OutcomeRefused || e.Answer == nil || e.Answer.Status != 429 || e.Last == nil {
				t.Errorf("sends %d, outcome %v, answer %+v, last %v; want 1, refused, the 429 and the last attempt's error", e.Sends, e.Outcome, e.Answer, e.Last)
			}
			if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
				t.Errorf("looked up: %v, want it forgotten", err)
			}
		})
	}
}
