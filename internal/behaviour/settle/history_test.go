package settle_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestHistory: what each attempt of an operation came to stands in its record, over
// all calls that tried it.
func TestHistory(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{
			{Err: wiretest.ErrLost, Delay: time.Second}, {Status: 503, Header: "Retry-After: 2"}, {Refused: true}, {Status: 201},
		}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Retry = oncehttp.Policy{MaxAttempts: 3} }))
		start := time.Now()
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		if got := clienttest.Lookup(t, c, "k").History; len(got) != 3 {
			t.Fatalf("after the first call: %+v", got)
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		rec := clienttest.Lookup(t, c, "k")
		want := []persist.Attempt{
			{Took: time.Second, Sent: true, Error: "connection reset"}, {Status: 503, Sent: true},
			{Error: "dial: connection refused"}, {Status: 201, Sent: true},
		}
		if len(rec.History) != len(want) || rec.Attempts != len(want) {
			t.Fatalf("%d attempts, history %+v", rec.Attempts, rec.History)
		}
		for i, got := range rec.History {
			if i == 0 && !got.At.Equal(start) || got.At.Before(start) {
				t.Errorf("attempt %d at %v", i, got.At)
			}
			if got.At = (time.Time{}); got != want[i] {
				t.Errorf("attempt %d: %+v, want %+v", i, got, want[i])
			}
		}
	})
}

// TestHistoryIsBounded, whatever Policy.MaxAttempts says.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: errors.New(strings.Repeat("x", 1000))}}}, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Retry = oncehttp.Policy{MaxAttempts: 40, MaxElapsed: time.Hour, MaxDelay: time.Second}
		}))
		for range 2 {
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		}
		rec := clienttest.Lookup(t, c, "k")
		if len(rec.History) != persist.HistoryMax || rec.Attempts != 80 || len(rec.History[0].Error) > persist.AttemptErrorBytesMax {
			t.Errorf("%d attempts, a history of %d", rec.Attempts, len(rec.History))
		}
	})
}

// TestNotes: why somebody ended an operation stays in its record.
func TestNotes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", persist.NoteBytesMax+1)
	absent := oncehttp.Resolution{Effect: oncehttp.EffectAbsent}
	rows := map[string]func(ctx context.Context, c *oncehttp.Client, note string) error{
		"Settle": func(ctx context.Context, c *oncehttp.Client, note string) error {
			r := absent
			r.Note = note
			return clienttest.SettleAsSeen(c, ctx, "k", r)
		},
		"Settle with an option": func(ctx context.Context, c *oncehttp.Client, note string) error {
			return clienttest.SettleAsSeen(c, ctx, "k", absent, oncehttp.WithNote(note))
		},
		"Abandon": func(ctx context.Context, c *oncehttp.Client, note string) error {
			return c.Abandon(ctx, "k", oncehttp.WithNote(note))
		},
	}
	for name, end := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
				if err := end(t.Context(), c, long); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("a note that is too long: %v", err)
				}
				if err := end(t.Context(), c, long[1:]); err != nil {
					t.Fatal(err)
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.Note != long[1:] {
					t.Errorf("a note of %d bytes", len(rec.Note))
				}
			})
		})
	}
}

// TestSweptStatus: of an answer that was swept the status is still told, so that a
// declined payment is not taken for one that was made.
func TestSweptStatus(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Header: "Content-Type: application/problem+json", Body: "{}"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }))
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if _, err := c.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrAnswerGone) || e.Answer == nil || e.Answer.Status != 402 || !e.Answer.BodyDropped {
			t.Errorf("%v, want the status", err)
		}
	})
}
