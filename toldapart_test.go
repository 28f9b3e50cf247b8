package oncehttp_test

import (
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// TestAnswersAreToldApart: success, 202 and refusal are told apart in the results of Do and Resume, in events, in records, also
// once these are swept, and by CheckRepeat.
func TestAnswersAreToldApart(t *testing.T) {
	t.Parallel()
	rows := map[int]struct {
		outcome oncehttp.Outcome
		effect  persist.Effect
	}{
		200: {oncehttp.OutcomeConfirmed, oncehttp.EffectHappened}, 201: {oncehttp.OutcomeConfirmed, oncehttp.EffectHappened},
		204: {oncehttp.OutcomeConfirmed, oncehttp.EffectHappened}, 202: {oncehttp.OutcomeAccepted, oncehttp.EffectHappened},
		400: {oncehttp.OutcomeRefused, oncehttp.EffectRefused}, 402: {oncehttp.OutcomeRefused, oncehttp.EffectRefused},
		404: {oncehttp.OutcomeRefused, oncehttp.EffectRefused}, 422: {oncehttp.OutcomeRefused, oncehttp.EffectRefused},
		499: {oncehttp.OutcomeRefused, oncehttp.EffectRefused},
	}
	for status, want := range rows {
		t.Run(time.Duration(status).String(), func(t *testing.T) {
			t.Parallel()
			eachJournal(t, func(t *testing.T, j persist.Journal) {
				var heard events
				c, _ := newClient(t, &wire{replies: []reply{{status: status}}}, on(j, func(cfg *oncehttp.Config) { cfg.Observe = heard.observe }))
				prepared, err := c.Prepare(post(t, "{}"), "enqueued")
				mustDo(t, err)
				mustDo(t, c.Enqueue(post(t, "{}"), "enqueued"))
				results := map[string]oncehttp.Result{"Resume": resume(t, c)["enqueued"].result}
				for _, name := range []string{"Do", "Do again"} {
					resp, err := c.DoKey(post(t, "{}"), "k")
					mustDo(t, err)
					results[name] = oncehttp.ResultOf(resp)
				}
				for name, r := range results {
					if r.Outcome != want.outcome || r.Effect != want.effect {
						t.Errorf("%s: %v, %q; want %v, %q", name, r.Outcome, r.Effect, want.outcome, want.effect)
					}
				}
				for _, kind := range []oncehttp.EventKind{oncehttp.EventAnswered, oncehttp.EventFinished, oncehttp.EventRecorded} {
					for _, e := range heard.of(kind) {
						if e.Outcome != want.outcome {
							t.Errorf("event %s: %v, want %v", kind, e.Outcome, want.outcome)
						}
					}
				}
				refused := want.outcome == oncehttp.OutcomeRefused
				for _, what := range []string{"kept", "swept"} {
					rec := lookup(t, c, "enqueued")
					if oncehttp.OutcomeOf(&rec) != want.outcome || rec.FinalEffect() != want.effect || rec.FinalStatus() != status {
						t.Errorf("%s record: %v, %q, %d", what, oncehttp.OutcomeOf(&rec), rec.FinalEffect(), rec.FinalStatus())
					}
					if err := rec.CheckRepeat(&prepared); (err != nil) != refused || refused && !errors.Is(err, oncehttp.ErrFinal) {
						t.Errorf("%s record: CheckRepeat: %v", what, err)
					}
					err := c.Enqueue(post(t, "{}"), "enqueued")
					var e *oncehttp.Error
					if (err != nil) != refused || refused && !(errors.As(err, &e) && errors.Is(err, oncehttp.ErrFinal) && e.Answer != nil && e.Answer.Status == status) {
						t.Errorf("%s record: Enqueue: %v", what, err)
					}
					time.Sleep(48 * time.Hour)
					if _, err := c.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}
