package neighbours_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/profile"
)

// Whoever tells how an operation ended, a result, an event or a record, tells a success, a refusal and a 202 apart.
func TestNeighbourOutcomes(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]oncehttp.Outcome{
		200: oncehttp.OutcomeConfirmed, 202: oncehttp.OutcomeAccepted, 204: oncehttp.OutcomeConfirmed, 206: oncehttp.OutcomeConfirmed,
		303: oncehttp.OutcomeConfirmed, 400: oncehttp.OutcomeRefused, 402: oncehttp.OutcomeRefused, 410: oncehttp.OutcomeRefused,
		451: oncehttp.OutcomeRefused, 418: oncehttp.OutcomeRefused,
	} {
		for _, way := range []string{"Do", "Transport", "Resume", "Run"} {
			t.Run(fmt.Sprintf("%d/%s", status, way), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { outcomesOf(t, status, way, want) })
			})
		}
	}
}

func outcomesOf(t *testing.T, status int, way string, want oncehttp.Outcome) {
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Header: "Location: /payments/1\nContent-Type: application/json", Body: `{}`}}}
	var mu sync.Mutex
	var finished []oncehttp.Outcome
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.KeepAnswer = time.Second
		if status == 303 {
			cfg.Profile = profile.Draft07()
			cfg.Profile.Own.SeeOther = profile.Yes
		}
		cfg.Observe = func(_ context.Context, e oncehttp.Event) {
			if e.Kind == oncehttp.EventFinished || e.Kind == oncehttp.EventRecorded {
				mu.Lock()
				defer mu.Unlock()
				finished = append(finished, e.Outcome)
			}
		}
	})
	req := clienttest.Post(t, "{}")
	req.Header.Set("Idempotency-Key", "k-1")
	var got oncehttp.Result
	switch way {
	case "Do":
		got = resultOf(t)(c.Do(req))
	case "Transport":
		got = resultOf(t)(c.Transport().RoundTrip(req))
	case "Resume":
		if err := c.Enqueue(req, ""); err != nil {
			t.Fatal(err)
		}
		for res, err := range c.Resume(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			got = res
		}
	case "Run":
		if err := c.Enqueue(req, ""); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		got.Outcome, got.Effect = oncehttp.OutcomeUnknown, ""
	}
	effect := oncehttp.EffectHappened
	if want == oncehttp.OutcomeRefused {
		effect = oncehttp.EffectRefused
	}
	if way != "Run" && (got.Outcome != want || got.Effect != effect) {
		t.Errorf("the result says %v, %q, want %v, %q", got.Outcome, got.Effect, want, effect)
	}
	if again := resultOf(t)(c.Do(req)); again.Outcome != want || again.Effect != effect {
		t.Errorf("the journal's answer says %v, %q, want %v, %q", again.Outcome, again.Effect, want, effect)
	}
	mu.Lock()
	if len(finished) != 2 || finished[0] != want || finished[1] != want {
		t.Errorf("the events say %v, want %v twice", finished, want)
	}
	mu.Unlock()
	for _, swept := range []bool{false, true} {
		if swept {
			time.Sleep(time.Minute)
			if _, err := c.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		rec := clienttest.Lookup(t, c, "k-1")
		if o := oncehttp.OutcomeOf(&rec); o != want || rec.FinalEffect() != effect || rec.Swept != swept || rec.FinalStatus() != status {
			t.Errorf("the record (swept %t) says %v, %q, %d, want %v, %q, %d", rec.Swept, o, rec.FinalEffect(), rec.FinalStatus(), want, effect, status)
		}
	}
}

func resultOf(t *testing.T) func(*http.Response, error) oncehttp.Result {
	t.Helper()
	return func(resp *http.Response, err error) oncehttp.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return oncehttp.ResultOf(resp)
	}
}
