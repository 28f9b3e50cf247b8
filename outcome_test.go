package oncehttp_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestOutcomes is the outcome table of the package's documentation, row by row.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	problem := "Content-Type: application/problem+json"
	ok := wiretest.Reply{Status: 201, Body: `{"id":"p1"}`}
	lost := wiretest.Reply{Err: wiretest.ErrLost}
	down := wiretest.Reply{Refused: true}
	type row struct {
		name    string
		replies []wiretest.Reply
		status  int // of the response; zero: an error
		sends   int
		outcome oncehttp.Outcome
		state   persist.State
		is      []error
	}
	rows := []row{
		{"2xx", []wiretest.Reply{ok}, 201, 1, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"202", []wiretest.Reply{{Status: 202}}, 202, 1, oncehttp.OutcomeAccepted, persist.StateConfirmed, nil},
		{"303", []wiretest.Reply{{Status: 303, Header: "Location: /x"}}, 0, 1, oncehttp.OutcomeUnknown, persist.StateHeld, []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrRedirected}},
		{"303 to nowhere", []wiretest.Reply{{Status: 303}}, 0, 1, oncehttp.OutcomeUnknown, persist.StateHeld, []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrRedirected}},
		{"a final 4xx", []wiretest.Reply{{Status: 402, Body: "no"}}, 402, 1, oncehttp.OutcomeRefused, persist.StateConfirmed, nil},
		{"lost, then answered", []wiretest.Reply{lost, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"cut body, then whole", []wiretest.Reply{{Status: 201, Body: `{"id`, Cut: true}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"lost for ever", []wiretest.Reply{lost}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown, wiretest.ErrLost}},
		{"408", []wiretest.Reply{{Status: 408}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"500", []wiretest.Reply{{Status: 500}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"500 once", []wiretest.Reply{{Status: 500}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"a replayed 500", []wiretest.Reply{{Status: 500, Header: "Idempotent-Replayed: true"}}, 0, 1, oncehttp.OutcomeUnknown, persist.StateHeld,
			[]error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrStoredError, oncehttp.ErrHeld}},
		{"no connection", []wiretest.Reply{down}, 0, 6, oncehttp.OutcomeNotSent, clienttest.Unknown, []error{oncehttp.ErrNoEffect, oncehttp.ErrNotSent}},
		{"an error without any trace", []wiretest.Reply{{Err: wiretest.ErrLost, Silent: true}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"lost, then no connection", []wiretest.Reply{lost, down}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"429", []wiretest.Reply{{Status: 429}}, 0, 6, oncehttp.OutcomeRefused, clienttest.Unknown, []error{oncehttp.ErrNoEffect, oncehttp.ErrRefused}},
		{"421, then answered", []wiretest.Reply{{Status: 421}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"401", []wiretest.Reply{{Status: 401}}, 0, 1, oncehttp.OutcomeRefused, clienttest.Unknown, []error{oncehttp.ErrNoEffect, oncehttp.ErrRefused}},
		{"403", []wiretest.Reply{{Status: 403}}, 0, 1, oncehttp.OutcomeRefused, clienttest.Unknown, []error{oncehttp.ErrNoEffect, oncehttp.ErrRefused}},
		{"lost, then 403", []wiretest.Reply{lost, {Status: 403}}, 0, 2, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"lost, then 404 of a gateway", []wiretest.Reply{lost, {Status: 404}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"lost, then a 402 in problem+json", []wiretest.Reply{lost, {Status: 402, Header: problem, Body: "{}"}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"499, then answered", []wiretest.Reply{{Status: 499, Body: "{}"}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"lost, then a replayed 404", []wiretest.Reply{lost, {Status: 404, Header: "Idempotent-Replayed: true", Body: "no"}}, 404, 2, oncehttp.OutcomeRefused, persist.StateConfirmed, nil},
		{"lost, then a replayed 401", []wiretest.Reply{lost, {Status: 401, Header: "Idempotent-Replayed: true"}}, 0, 2, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"lost, then 429", []wiretest.Reply{lost, {Status: 429}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"409", []wiretest.Reply{{Status: 409}}, 0, 6, oncehttp.OutcomeInFlight, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrInFlight}},
		{"409, then answered", []wiretest.Reply{{Status: 409}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"422 with problem+json", []wiretest.Reply{{Status: 422, Header: problem}}, 0, 1, oncehttp.OutcomeMismatch, persist.StateMismatched, []error{oncehttp.ErrFinal, oncehttp.ErrKeyReused}},
		{"422 with a link", []wiretest.Reply{{Status: 422, Header: `Link: <https://x.example/doc>; rel="describedby"; type="text/html"`}}, 0, 1, oncehttp.OutcomeMismatch, persist.StateMismatched,
			[]error{oncehttp.ErrFinal, oncehttp.ErrKeyReused}},
		{"lost, then 422 with problem+json", []wiretest.Reply{lost, {Status: 422, Header: problem}}, 0, 2, oncehttp.OutcomeMismatch, persist.StateHeld,
			[]error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrKeyReused, oncehttp.ErrHeld}},
		{"422 of the business", []wiretest.Reply{{Status: 422, Body: "no"}}, 422, 1, oncehttp.OutcomeRefused, persist.StateConfirmed, nil},
		{"301", []wiretest.Reply{{Status: 301, Header: "Location: https://api.example.com/new"}}, 0, 1, oncehttp.OutcomeUnknown, persist.StateHeld,
			[]error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrRedirected, oncehttp.ErrHeld}},
		{"307 to another origin", []wiretest.Reply{{Status: 307, Header: "Location: https://evil.example.com/payments"}}, 0, 1, oncehttp.OutcomeUnknown, persist.StateHeld,
			[]error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrRedirected}},
		{"308 on the same origin", []wiretest.Reply{{Status: 308, Header: "Location: /v2/payments"}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: r.replies}
				c, _ := clienttest.New(t, w, nil)
				key := oncehttp.NewScope("order").Key("u1", "o1")
				resp, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), key)
				if (err == nil) != (r.status != 0) {
					t.Fatalf("err = %v, want status %d", err, r.status)
				}
				outcome := oncehttp.ResultOf(resp).Outcome
				if err == nil {
					if resp.StatusCode != r.status || clienttest.Read(t, resp) != r.replies[min(r.sends, len(r.replies))-1].Body {
						t.Errorf("status %d, want %d with the last reply's body", resp.StatusCode, r.status)
					}
				} else {
					clienttest.ExactlyOne(t, err)
					var e *oncehttp.Error
					errors.As(err, &e)
					outcome = e.Outcome
					for _, is := range r.is {
						if !errors.Is(err, is) {
							t.Errorf("%v does not match %v", err, is)
						}
					}
				}
				if outcome != r.outcome {
					t.Errorf("outcome %v, want %v", outcome, r.outcome)
				}
				if w.Count() != r.sends || len(w.Keys()) != 1 || w.Keys()[string(key)] != r.sends {
					t.Errorf("%d sends with keys %v, want %d with %q", w.Count(), w.Keys(), r.sends, key)
				}
				rec, err := c.Lookup(t.Context(), key)
				if r.state == clienttest.Unknown {
					if !errors.Is(err, persist.ErrNotFound) {
						t.Errorf("Lookup after no effect: %v, %v; want persist.ErrNotFound", rec.State, err)
					}
				} else if err != nil || rec.State != r.state {
					t.Errorf("record is %v (%v), want %v", rec.State, err, r.state)
				}
			})
		})
	}
}

// TestOutcomeOfContradicted: a refusal or an absence that an event of the API contradicts is an unknown outcome, as in the error of a call. (Invariant 56.)
func TestOutcomeOfContradicted(t *testing.T) {
	t.Parallel()
	refused := persist.Record{State: persist.StateConfirmed, Effect: persist.EffectRefused, Answer: &persist.Answer{Status: 402}}
	absent := persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent}
	for want, rec := range map[oncehttp.Outcome]persist.Record{oncehttp.OutcomeRefused: refused, oncehttp.OutcomeNotSent: absent} {
		if got := oncehttp.OutcomeOf(&rec); got != want {
			t.Errorf("%v, want %v", got, want)
		}
		if rec.Evidence = (&persist.Evidence{}); oncehttp.OutcomeOf(&rec) != oncehttp.OutcomeUnknown {
			t.Errorf("%v with evidence", oncehttp.OutcomeOf(&rec))
		}
	}
}
