package run

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// stopwatch adds up the times of one call, for events. One goroutine uses it at a time. If nobody gets events, it measures nothing.
type stopwatch struct {
	asked bool           // else nobody gets the times
	began time.Time      // by this process's own clock
	spent Durations      // without Whole
	in    *time.Duration // the part under way, one of spent; nil: the client's own work
	since time.Duration  // the begin of that part, after began
}

// unasked is the stopwatch of all calls of clients without Observe and Instrument.
var unasked stopwatch

// newStopwatch starts the stopwatch of a call. If no function of the client's Config gets the times, it returns the shared unasked, which measures
// nothing: so such calls need no memory for it.
func newStopwatch(c *Config) *stopwatch {
	if c.Observe == nil && c.Instrument == nil {
		return &unasked
	}
	return &stopwatch{asked: true, began: time.Now()}
}

// copy returns a stopwatch that goes on from here, without the part under way. Both can be used then, each by one
// goroutine.
func (w *stopwatch) copy() *stopwatch {
	if !w.asked {
		return w
	}
	return &stopwatch{asked: true, began: w.began, spent: w.spent}
}

// enter begins to measure a part of the call, such as the time in the journal: part is a field of spent. It ends the part before. A later leave ends
// this one.
func (w *stopwatch) enter(part *time.Duration) {
	if w.asked {
		w.lap(time.Since(w.began))
		w.in = part
	}
}

// leave ends the part under way, if there is one.
func (w *stopwatch) leave() {
	if w.in != nil {
		w.lap(time.Since(w.began))
		w.in = nil
	}
}

// lap adds the time since the last lap to the running part, if there is one. now is the time on the stopwatch.
func (w *stopwatch) lap(now time.Duration) {
	if w.in != nil {
		*w.in += now - w.since
	}
	w.since = now
}

// read returns the times so far, with the part under way.
func (w *stopwatch) read() Durations {
	if !w.asked {
		return Durations{}
	}
	now := time.Since(w.began)
	w.lap(now)
	d := w.spent
	d.Whole = now
	return d
}

// timed returns the journal for the calls of one run: their time counts as the journal's.
func (w *stopwatch) timed(j persist.Journal) persist.Journal {
	if !w.asked {
		return j
	}
	return timedJournal{j, w}
}

// timedJournal is a journal with a stopwatch. It times the calls of a run.
type timedJournal struct {
	persist.Journal
	took *stopwatch // of the run's one goroutine
}

// asking begins to count time as the journal's, until leave of the stopwatch.
func (j timedJournal) asking() { j.took.enter(&j.took.spent.Journal) }

// Get implements persist.Journal. Its time is added to the stopwatch.
func (j timedJournal) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	j.asking()
	defer j.took.leave()
	return j.Journal.Get(ctx, id)
}

// Update implements persist.Journal. Its time is added to the stopwatch.
func (j timedJournal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	j.asking()
	defer j.took.leave()
	return j.Journal.Update(ctx, rec)
}

// Finish implements persist.Journal. Its time is added to the stopwatch.
func (j timedJournal) Finish(ctx context.Context, rec persist.Record) error {
	j.asking()
	defer j.took.leave()
	return j.Journal.Finish(ctx, rec)
}

// Forget implements persist.Journal. Its time is added to the stopwatch.
func (j timedJournal) Forget(ctx context.Context, rec persist.Record) error {
	j.asking()
	defer j.took.leave()
	return j.Journal.Forget(ctx, rec)
}

// Flush implements persist.Journal. Its time is added to the stopwatch.
func (j timedJournal) Flush(ctx context.Context) error {
	j.asking()
	defer j.took.leave()
	return j.Journal.Flush(ctx)
}
