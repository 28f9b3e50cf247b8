package oncehttp_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// mayRetry is a declined card that Stripe allows to be tried again with the same key.
func mayRetry(body string) reply {
	return reply{status: 402, header: "Stripe-Should-Retry: true", body: body}
}

func stripe(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }

// TestFinalAnswerStandsUntilAnAttemptSaysMore: after a final answer that the server allowed to try again, an
// attempt that was not sent or that the server refused changes nothing, and another final answer replaces it.
func TestFinalAnswerStandsUntilAnAttemptSaysMore(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		later  []reply
		status int
		body   string
	}{
		"then no connection":             {[]reply{{refused: true}}, 402, "declined"},
		"then refused":                   {[]reply{{status: 429}}, 402, "declined"},
		"then refused for good":          {[]reply{{status: 401}}, 402, "declined"},
		"then declined again":            {[]reply{{status: 402, body: "declined twice"}}, 402, "declined twice"},
		"then paid":                      {[]reply{{status: 429}, {refused: true}, {status: 201, body: "paid"}}, 201, "paid"},
		"declined again, no connection":  {[]reply{mayRetry("declined twice"), {refused: true}}, 402, "declined twice"},
		"then lost, and a stored answer": {[]reply{{err: errLost}, {status: 402, header: "Idempotent-Replayed: true", body: "stored"}}, 402, "stored"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: append([]reply{mayRetry("declined")}, r.later...)}
				c, _ := newClient(t, w, stripe)
				resp, err := c.DoKey(post(t, "{}"), "k")
				if err != nil {
					t.Fatalf("%v after %d sends, want the %d", err, w.count(), r.status)
				}
				if got := read(t, resp); resp.StatusCode != r.status || got != r.body {
					t.Errorf("answered %d %q, want %d %q", resp.StatusCode, got, r.status, r.body)
				}
				rec := lookup(t, c, "k")
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
		later []reply
		also  error
		state persist.State
	}{
		"lost":              {[]reply{{err: errLost}}, nil, persist.StatePending},
		"cut":               {[]reply{{status: 402, body: "decl", cut: true}}, nil, persist.StatePending},
		"500":               {[]reply{{status: 500}}, nil, persist.StatePending},
		"in flight":         {[]reply{{status: 409, body: `{"error":{"code":"idempotency_key_in_use"}}`}}, oncehttp.ErrInFlight, persist.StatePending},
		"500, 402":          {[]reply{{status: 500}, {status: 402}}, nil, persist.StatePending},
		"lost, not sent":    {[]reply{{err: errLost}, {refused: true}}, nil, persist.StatePending},
		"another's key":     {[]reply{{status: 400, body: `{"error":{"type":"idempotency_error"}}`}}, oncehttp.ErrKeyReused, persist.StateHeld},
		"redirected":        {[]reply{{status: 302, header: "Location: /x"}}, oncehttp.ErrRedirected, persist.StateHeld},
		"redirected by 303": {[]reply{{status: 303, header: "Location: https://login.example.com/"}}, oncehttp.ErrRedirected, persist.StateHeld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: append([]reply{mayRetry("declined")}, r.later...)}
				c, _ := newClient(t, w, stripe)
				resp, err := c.DoKey(post(t, "{}"), "k")
				if err == nil {
					t.Fatalf("answered %d, want an unknown outcome", resp.StatusCode)
				}
				exactlyOne(t, err)
				if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || r.also != nil && !errors.Is(err, r.also) {
					t.Errorf("%v, want an unknown outcome (%v)", err, r.also)
				}
				if rec := lookup(t, c, "k"); rec.State != r.state {
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
	bubble(t, func(t *testing.T) {
		calls := 0
		w := &wire{replies: []reply{mayRetry("declined")}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
			cfg.Profile = profile.StripeV1()
			cfg.Profile.Window.Floor = time.Hour
			cfg.Authorize = func(*http.Request) error {
				if calls++; calls > 1 {
					time.Sleep(2 * time.Hour)
				}
				return nil
			}
		})
		resp, err := c.DoKey(post(t, "{}"), "k")
		if err != nil || resp.StatusCode != 402 || w.count() != 1 {
			t.Errorf("%v after %d sends, want the 402 of the only one", err, w.count())
		}
	})
}

// TestNotSentNeedsThatNothingWasHandedOver: an operation that the server refused once was sent, whatever became
// of the attempts after it.
func TestNotSentNeedsThatNothingWasHandedOver(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: 429, body: "slow down"}, {refused: true}}}
			c, _ := newClient(t, w, nil)
			if plain {
				resp, err := c.StandardClient().Do(post(t, "{}"))
				if err != nil || resp.StatusCode != 429 || read(t, resp) != "slow down" {
					t.Errorf("plain HTTP: %v, want the 429", err)
				}
				return
			}
			_, err := c.DoKey(post(t, "{}"), "k")
			exactlyOne(t, err)
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
