package keeping_test

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

// TestSweep: answers go after KeepAnswer, chosen keys after KeepKey, generated ones
// with their answer, and what is unfinished never.
func TestSweep(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	rows := []struct {
		name                         string
		keepAnswer, keepKey, after   time.Duration
		answer, tombstone, generated bool // what is left
	}{
		{"at once", 0, 0, 0, true, true, true},
		{"a moment before the window's end", 0, 0, 24*hour - 1, true, true, true},
		{"at the window's end", 0, 0, 24 * hour, false, true, false},
		{"KeepAnswer, a moment before", 3 * hour, 0, 3*hour - 1, true, true, true},
		{"KeepAnswer", 3 * hour, 0, 3 * hour, false, true, false},
		{"no answer at all", -1, 0, 0, false, true, false},
		{"for ever", 0, 0, 100 * 365 * 24 * hour, false, true, false},
		{"KeepKey, a moment before", 30 * hour, 50 * hour, 50*hour - 1, false, true, false},
		{"KeepKey", 30 * hour, 50 * hour, 50 * hour, false, false, false},
		{"KeepKey, shorter than KeepAnswer", 50 * hour, 30 * hour, 40 * hour, true, true, true},
		{"no key at all", 30 * hour, -1, 30 * hour, false, false, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 301}, {Status: 201, Body: "paid"}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
					cfg.Retry.MaxAttempts, cfg.KeepAnswer, cfg.KeepKey = 1, r.keepAnswer, r.keepKey
				}))
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "lost")
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "held")
				if _, err := c.DoKey(clienttest.Post(t, "{}"), "chosen"); err != nil {
					t.Fatal(err)
				}
				resp, err := c.Do(clienttest.Post(t, "{}"))
				if err != nil {
					t.Fatal(err)
				}
				generated := oncehttp.ResultOf(resp).Key
				time.Sleep(r.after)
				if _, err := c.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				for key, want := range map[oncehttp.Key][2]bool{"chosen": {r.tombstone, r.answer}, generated: {r.generated, r.generated}} {
					rec, err := c.Lookup(t.Context(), key)
					if (err == nil) != want[0] || (rec.Answer != nil) != want[1] || err == nil && rec.Swept == want[1] {
						t.Errorf("%s: %v, answer %v, swept %v; want it there %v, its answer %v", key, err, rec.Answer, rec.Swept, want[0], want[1])
					}
				}
				if clienttest.Lookup(t, c, "lost").State != persist.StatePending || clienttest.Lookup(t, c, "held").State != persist.StateHeld || len(clienttest.Lookup(t, c, "lost").Body) == 0 {
					t.Error("what is unfinished was swept")
				}
				if n, err := c.Sweep(t.Context()); n != 0 || err != nil {
					t.Errorf("again: %d, %v", n, err)
				}
			})
		})
	}
}

// TestTombstones remember how it ended, and of which request.
func TestTombstones(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Err: wiretest.ErrLost}, {Status: 422, Header: "Content-Type: application/problem+json"}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		for _, key := range []oncehttp.Key{"abandoned", "settled", "refused", "confirmed"} {
			_, _ = c.DoKey(clienttest.Post(t, "{}"), key)
		}
		err := errors.Join(c.Abandon(t.Context(), "abandoned"), c.Settle(t.Context(), "settled", oncehttp.Resolution{
			Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 200, Body: []byte("found")},
		}))
		time.Sleep(48 * time.Hour)
		if n, sweepErr := c.Sweep(t.Context()); n != 4 || sweepErr != nil || err != nil {
			t.Fatal(n, sweepErr, err)
		}
		for key, is := range map[oncehttp.Key]error{
			"abandoned": oncehttp.ErrAbandoned, "settled": oncehttp.ErrAnswerGone, "refused": oncehttp.ErrKeyReused, "confirmed": oncehttp.ErrAnswerGone,
		} {
			_, err := c.DoKey(clienttest.Post(t, "{}"), key)
			clienttest.Refused(t, err, clienttest.Lookup(t, c, key).State, []error{is})
			if _, err := c.DoKey(clienttest.Post(t, `{"other":1}`), key); !errors.Is(err, oncehttp.ErrKeyReused) {
				t.Errorf("%s with other bytes: %v", key, err)
			}
		}
		if w.Count() != 4 {
			t.Errorf("%d sends", w.Count())
		}
	})
}
