package journal

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestPrunedTo: a prune takes the text of a used key once its answer may go, the server does not know the key, and nobody needs the text; else it takes
// the answer, the key, or nothing. The record itself stays as it is.
func TestPrunedTo(t *testing.T) {
	t.Parallel()
	now := time.Now()
	done := func(change func(*persist.Record)) *persist.Record {
		rec := &persist.Record{
			ID: persist.ID{Key: "idemp:a"}, State: persist.StateConfirmed, Window: time.Hour, FirstSent: now.Add(-3 * time.Hour), Finished: now.Add(-3 * time.Hour),
			Answer: &persist.Answer{Status: 201}, Body: []byte("{}"), Fingerprint: make([]byte, 32),
		}
		change(rec)
		return rec
	}
	same := func(*persist.Record) {}
	text := persist.Limits{Prune: true, KeepText: 2 * time.Hour}
	for name, c := range map[string]struct {
		limits persist.Limits
		rec    *persist.Record
		want   int
	}{
		"the text":             {text, done(same), losesText},
		"the text is kept":     {persist.Limits{Prune: true, KeepText: 4 * time.Hour}, done(same), losesAnswer},
		"the key is known":     {persist.Limits{Prune: true, KeepAnswer: -1, KeepText: -1}, done(func(rec *persist.Record) { rec.FirstSent = now.Add(-time.Minute) }), losesAnswer},
		"a field is kept":      {text, done(func(rec *persist.Record) { rec.KeptFields = []persist.KeptField{{Pointer: "/order", Value: "1"}} }), losesAnswer},
		"another generation":   {text, done(func(rec *persist.Record) { rec.ReplacedBy = "idemp:a:gen=2" }), losesAnswer},
		"a tombstone":          {text, done(func(rec *persist.Record) { rec.Strip() }), losesText},
		"pending":              {text, done(func(rec *persist.Record) { rec.State = persist.StatePending }), stays},
		"the key":              {persist.Limits{Prune: true, KeepKey: -1}, done(same), isForgotten},
		"as the record has it": {persist.Limits{}, done(same), losesAnswer},
	} {
		swept := c.rec.Swept
		if got := prunedTo(&c.limits, c.rec, now); got != c.want || c.rec.Erased || c.rec.Swept != swept {
			t.Errorf("%s: fate %d, want %d; the record %+v", name, got, c.want, c.rec)
		}
	}
}
