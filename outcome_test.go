package oncehttp_test

import (
	"errors"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

const forgotten = persist.State(200)

// TestOutcomes is the outcome table of the package's documentation, row by row.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	problem := "Content-Type: application/problem+json"
	ok := reply{status: 201, body: `{"id":"p1"}`}
	lost := reply{err: errLost}
	down := reply{refused: true}
	type row struct {
		name    string
		replies []reply
		status  int // of the response; zero: an error
		sends   int
		outcome oncehttp.Outcome
		state   persist.State
		is      []error
	}
	rows := []row{
		{"2xx", []reply{ok}, 201, 1, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"202", []reply{{status: 202}}, 202, 1, oncehttp.OutcomeAccepted, persist.StateConfirmed, nil},
		{"303", []reply{{status: 303, header: "Location: /x"}}, 303, 1, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"303 to nowhere", []reply{{status: 303}}, 0, 1, oncehttp.OutcomeUnknown, persist.StateHeld, []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrRedirected}},
		{"a final 4xx", []reply{{status: 402, body: "no"}}, 402, 1, oncehttp.OutcomeRefused, persist.StateConfirmed, nil},
		{"lost, then answered", []reply{lost, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"cut body, then whole", []reply{{status: 201, body: `{"id`, cut: true}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"lost for ever", []reply{lost}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown, errLost}},
		{"408", []reply{{status: 408}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"500", []reply{{status: 500}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"500 once", []reply{{status: 500}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"a replayed 500", []reply{{status: 500, header: "Idempotent-Replayed: true"}}, 0, 1, oncehttp.OutcomeUnknown, persist.StateHeld,
			[]error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrStoredError, oncehttp.ErrHeld}},
		{"no connection", []reply{down}, 0, 6, oncehttp.OutcomeNotSent, forgotten, []error{oncehttp.ErrNoEffect, oncehttp.ErrNotSent}},
		{"an error without any trace", []reply{{err: errLost, silent: true}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"lost, then no connection", []reply{lost, down}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"429", []reply{{status: 429}}, 0, 6, oncehttp.OutcomeRefused, forgotten, []error{oncehttp.ErrNoEffect, oncehttp.ErrRefused}},
		{"421, then answered", []reply{{status: 421}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"401", []reply{{status: 401}}, 0, 1, oncehttp.OutcomeRefused, forgotten, []error{oncehttp.ErrNoEffect, oncehttp.ErrRefused}},
		{"403", []reply{{status: 403}}, 0, 1, oncehttp.OutcomeRefused, forgotten, []error{oncehttp.ErrNoEffect, oncehttp.ErrRefused}},
		{"lost, then 403", []reply{lost, {status: 403}}, 0, 2, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"lost, then 404 of a gateway", []reply{lost, {status: 404}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"lost, then 402 of the API", []reply{lost, {status: 402, header: problem, body: "{}"}}, 402, 2, oncehttp.OutcomeRefused, persist.StateConfirmed, nil},
		{"lost, then a replayed 404", []reply{lost, {status: 404, header: "Idempotent-Replayed: true", body: "no"}}, 404, 2, oncehttp.OutcomeRefused, persist.StateConfirmed, nil},
		{"lost, then a replayed 401", []reply{lost, {status: 401, header: "Idempotent-Replayed: true"}}, 0, 2, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"lost, then 429", []reply{lost, {status: 429}}, 0, 6, oncehttp.OutcomeUnknown, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown}},
		{"409", []reply{{status: 409}}, 0, 6, oncehttp.OutcomeInFlight, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrInFlight}},
		{"409, then answered", []reply{{status: 409}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
		{"422 with problem+json", []reply{{status: 422, header: problem}}, 0, 1, oncehttp.OutcomeMismatch, persist.StateMismatched, []error{oncehttp.ErrFinal, oncehttp.ErrKeyReused}},
		{"422 with a link", []reply{{status: 422, header: `Link: <https://x.example/doc>; rel="describedby"; type="text/html"`}}, 0, 1, oncehttp.OutcomeMismatch, persist.StateMismatched,
			[]error{oncehttp.ErrFinal, oncehttp.ErrKeyReused}},
		{"lost, then 422 with problem+json", []reply{lost, {status: 422, header: problem}}, 0, 2, oncehttp.OutcomeMismatch, persist.StateHeld,
			[]error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrKeyReused, oncehttp.ErrHeld}},
		{"422 of the business", []reply{{status: 422, body: "no"}}, 422, 1, oncehttp.OutcomeRefused, persist.StateConfirmed, nil},
		{"301", []reply{{status: 301, header: "Location: https://api.example.com/new"}}, 0, 1, oncehttp.OutcomeUnknown, persist.StateHeld,
			[]error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrRedirected, oncehttp.ErrHeld}},
		{"307 to another origin", []reply{{status: 307, header: "Location: https://evil.example.com/payments"}}, 0, 1, oncehttp.OutcomeUnknown, persist.StateHeld,
			[]error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrRedirected}},
		{"308 on the same origin", []reply{{status: 308, header: "Location: /v2/payments"}, ok}, 201, 2, oncehttp.OutcomeConfirmed, persist.StateConfirmed, nil},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: r.replies}
				c, _ := newClient(t, w, nil)
				key := oncehttp.NewScope("order").Key("u1", "o1")
				resp, err := c.DoKey(post(t, `{"amount":1}`), key)
				if (err == nil) != (r.status != 0) {
					t.Fatalf("err = %v, want status %d", err, r.status)
				}
				outcome := oncehttp.ResultOf(resp).Outcome
				if err == nil {
					if resp.StatusCode != r.status || read(t, resp) != r.replies[min(r.sends, len(r.replies))-1].body {
						t.Errorf("status %d, want %d with the last reply's body", resp.StatusCode, r.status)
					}
				} else {
					exactlyOne(t, err)
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
				if w.count() != r.sends || len(w.keys()) != 1 || w.keys()[string(key)] != r.sends {
					t.Errorf("%d sends with keys %v, want %d with %q", w.count(), w.keys(), r.sends, key)
				}
				rec, err := c.Lookup(t.Context(), key)
				if r.state == forgotten {
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
