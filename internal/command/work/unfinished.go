package work

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/gauges"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/persist"
)

// Unfinished is the part of /healthz about the whole journal, whoever works on it.
type Unfinished struct {
	Pending int                        `json:"pending"`
	Held    map[persist.HoldReason]int `json:"held"`              // by reason
	Oldest  time.Time                  `json:"oldest,omitzero"`   // when the oldest was begun
	NextDue time.Time                  `json:"next_due,omitzero"` // of the pending ones
	Owed    int                        `json:"owed"`              // results that wait for OnResult; of final ones, too

	DueUnsent *DueUnsent `json:"due_unsent,omitempty"` // nil: there is none, or the journal did not say
}

// DueUnsent names the oldest operation that is due, that nobody has, and that was never sent.
type DueUnsent struct {
	Key     string    `json:"key"`
	Account string    `json:"account,omitempty"`
	Origin  string    `json:"origin"`
	Since   time.Time `json:"since"` // when it fell due
}

// countEvery is the time between two counts of a journal.
const countEvery = 5 * time.Second

// counting keeps the last counts of a journal.
type counting struct {
	mu   sync.Mutex
	at   time.Time
	last persist.Counts
	due  *DueUnsent
	err  error
}

// dueLooks bounds the due operations that are looked at for one that was never sent.
const dueLooks = 200

// unfinished returns counts of the journal, at most countEvery old; ok is false if the journal has none, or does not answer. It also looks for the oldest
// operation that is due and unsent (w.counting.due).
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
		w.counting.due = w.dueUnsent(ctx)
		w.counting.at = time.Now()
	}
	return w.counting.last, w.counting.err == nil
}

// addUnfinished adds the counts of unfinished operations in the journal to those of the worker, if the journal tells them. Owed are the held and ended ones
// whose result was not yet delivered to Config.OnResult; DueUnsent is the oldest that waits for a worker.
func (w *worker) addUnfinished(now *Counts) {
	if c, ok := w.unfinished(); ok {
		now.Unfinished = &Unfinished{Pending: c.Pending, Held: c.Held, Oldest: c.Oldest, NextDue: c.NextDue, Owed: c.Owed}
		w.counting.mu.Lock()
		now.Unfinished.DueUnsent = w.counting.due
		w.counting.mu.Unlock()
	}
}

// dueUnsent returns the oldest operation that is due and was never sent, among the first due ones; nil if there is none. If it waits for long, no worker
// takes it. At most dueLooks operations are looked at, up to the first error of the journal.
func (w *worker) dueUnsent(ctx context.Context) *DueUnsent {
	now, looked := time.Now(), 0
	for rec, err := range w.ses.Journal.List(ctx, persist.Query{AllAccounts: true, States: []persist.State{persist.StatePending}, DueBy: now}) {
		if looked++; err != nil || looked > dueLooks {
			break
		}
		if view.IsDueUnsent(&rec, now) {
			since := rec.NextAttempt
			if since.IsZero() { // due since it was begun
				since = rec.Created
			}
			return &DueUnsent{Key: rec.Key, Account: rec.ScopedAccount(), Origin: rec.Origin, Since: since}
		}
	}
	return nil
}

// writeUnfinished writes the gauges of the journal, if they are known.
func (w *worker) writeUnfinished(b *strings.Builder) {
	if c, ok := w.unfinished(); ok {
		gauges.Counts(b, w.ses.Place.Short(), &c, time.Now())
	}
}
