package noeffect_test

import (
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
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
		418: {oncehttp.OutcomeRefused, oncehttp.EffectRefused},
	}
	for status, want := range rows {
		t.Run(time.Duration(status).String(), func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				var heard clienttest.Events
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: status}}}, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Observe = heard.Observe }))
				prepared, err := c.Prepare(clienttest.Post(t, "{}"), "enqueued")
				clienttest.Must(t, err)
				clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "enqueued"))
				results := map[string]oncehttp.Result{"Resume": clienttest.Resume(t, c)["enqueued"].Result}
				for _, name := range []string{"Do", "Do again"} {
					resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					clienttest.Must(t, err)
					results[name] = oncehttp.ResultOf(resp)
				}
				for name, r := range results {
					if r.Outcome != want.outcome || r.Effect != want.effect {
						t.Errorf("%s: %v, %q; want %v, %q", name, r.Outcome, r.Effect, want.outcome, want.effect)
					}
				}
				for _, kind := range []oncehttp.EventKind{oncehttp.EventAnswered, oncehttp.EventFinished, oncehttp.EventRecorded} {
					for _, e := range heard.Of(kind) {
						if e.Outcome != want.outcome {
							t.Errorf("event %s: %v, want %v", kind, e.Outcome, want.outcome)
						}
					}
				}
				refused := want.outcome == oncehttp.OutcomeRefused
				for _, what := range []string{"kept", "swept"} {
					rec := clienttest.Lookup(t, c, "enqueued")
					if oncehttp.OutcomeOf(&rec) != want.outcome || rec.FinalEffect() != want.effect || rec.FinalStatus() != status {
						t.Errorf("%s record: %v, %q, %d", what, oncehttp.OutcomeOf(&rec), rec.FinalEffect(), rec.FinalStatus())
					}
					says := oncehttp.ErrFinal
					if what == "kept" { // no call has asked for the end so far
						says = oncehttp.ErrOutcomeUnknown
					}
					if err := rec.CheckRepeat(&prepared); (err != nil) != refused || refused && !errors.Is(err, says) {
						t.Errorf("%s record: CheckRepeat: %v, want %v", what, err, says)
					}
					err := c.Enqueue(clienttest.Post(t, "{}"), "enqueued")
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
