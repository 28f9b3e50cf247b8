package work

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/gauges"
	"github.com/oncehttp/oncehttp/persist"
)

// Unfinished is the part of /healthz about the whole journal, whoever works on it.
type Unfinished struct {
	Pending int                        `json:"pending"`
	Held    map[persist.HoldReason]int `json:"held"`              // by reason
	Oldest  time.Time                  `json:"oldest,omitzero"`   // when the oldest was begun
	NextDue time.Time                  `json:"next_due,omitzero"` // of the pending ones
	Owed    int                        `json:"owed"`              // results that wait for OnResult; of final ones, too
}

// countEvery is the time between two counts of a journal.
const countEvery = 5 * time.Second

// counting keeps the last counts of a journal.
type counting struct {
	mu   sync.Mutex
	at   time.Time
	last persist.Counts
	err  error
}

// unfinished returns counts of the journal, at most countEvery old; ok is false if the journal has none, or does not answer.
func (w *worker) unfinished() (c persist.Counts, ok bool) {
	counter, ok := persist.As[persist.Counter](w.ses.Journal)
	if !ok {
		return c, false
	}
	w.counting.mu.Lock()
	defer w.counting.mu.Unlock()
	if time.Since(w.counting.at) >= countEvery {
		ctx, cancel := context.WithTimeout(context.Background(), pingWait)
		defer cancel()
		w.counting.last, w.counting.err = counter.Count(ctx)
		w.counting.at = time.Now()
	}
	return w.counting.last, w.counting.err == nil
}

// addUnfinished adds the counts of the journal to those of the worker, if they are known.
func (w *worker) addUnfinished(now *Counts) {
	if c, ok := w.unfinished(); ok {
		now.Unfinished = &Unfinished{Pending: c.Pending, Held: c.Held, Oldest: c.Oldest, NextDue: c.NextDue, Owed: c.Owed}
	}
}

// writeUnfinished writes the gauges of the journal, if they are known.
func (w *worker) writeUnfinished(b *strings.Builder) {
	if c, ok := w.unfinished(); ok {
		gauges.Counts(b, filepath.Base(w.ses.Place.Name), &c, time.Now())
	}
}
