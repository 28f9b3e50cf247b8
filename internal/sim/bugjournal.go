package sim

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// faultyJournal is a journal with one bug.
type faultyJournal struct {
	persist.Journal
	bug Bug

	mu      sync.Mutex
	gone    map[persist.ID]bool // forgotten
	answer  *persist.Answer     // the last one of all
	skipped bool                // the next Flush does nothing
}

// faulty wraps a journal so that it has the bug of this run, by which the simulation is tested itself. In a run without a bug it returns j.
func (w *world) faulty(j persist.Journal) persist.Journal {
	if w.bug == "" {
		return j
	}
	return &faultyJournal{Journal: j, bug: w.bug, gone: map[persist.ID]bool{}}
}

// Begin implements [persist.Journal]. With some deliberate bugs, which the simulation must find, it returns a false record: another operation's
// answer, another fingerprint or another state.
func (j *faultyJournal) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if stale, ok := j.stale(ctx, rec); ok {
		return stale, false, nil
	}
	standing, created, err := j.Journal.Begin(ctx, rec)
	if j.bug == BugNoFingerprint && err == nil {
		standing.Fingerprint, standing.Recipe, standing.Content = rec.Fingerprint, rec.Recipe, rec.Content
	}
	if j.bug == BugAbandonedIsResent && standing.State == persist.StateAbandoned {
		standing.State = persist.StateConfirmed
		standing.Answer = &persist.Answer{Status: 200, BodyDropped: true}
	}
	return j.read(standing), created, err
}

// stale returns a false record in place of the operation's own, for two deliberate bugs: an answer from another operation, or another account's
// record. It returns false if Begin shall work as usual.
func (j *faultyJournal) stale(ctx context.Context, rec persist.Record) (persist.Record, bool) {
	j.mu.Lock()
	gone, answer := j.gone[rec.ID], j.answer
	j.mu.Unlock()
	switch {
	case j.bug == BugStaleAnswer && gone && answer != nil:
		rec.State, rec.Answer, rec.Finished = persist.StateConfirmed, answer, rec.Created
		return rec, true
	case j.bug == BugOthersAnswer:
		others := persist.ID{Account: accountName(1 - number(rec.Account)), Key: rec.Key}
		standing, err := j.Get(ctx, others)
		standing.ID = rec.ID
		return standing, err == nil && standing.State == persist.StateConfirmed && string(standing.Fingerprint) == string(rec.Fingerprint)
	}
	return persist.Record{}, false
}

// read returns a record as the client gets it. Three deliberate bugs, which the simulation must find, change it: a window too long, no lease, or
// pending in place of held.
func (j *faultyJournal) read(rec persist.Record) persist.Record {
	switch {
	case j.bug == BugNoWindow:
		rec.Window *= 1000
	case j.bug == BugNoLease:
		rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	case j.bug == BugHeldIsSent && rec.State == persist.StateHeld:
		rec.State, rec.HoldReason = persist.StatePending, ""
	}
	return rec
}

// Get implements [persist.Journal]. With a deliberate bug of reads the record is changed.
func (j *faultyJournal) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	rec, err := j.Journal.Get(ctx, id)
	return j.read(rec), err
}

// List implements [persist.Journal]. The records have the change of read. Those that q no longer selects after the change are left out.
func (j *faultyJournal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		for rec, err := range j.Journal.List(ctx, q) {
			shown := j.read(rec)
			if err == nil && !q.Match(&shown) {
				continue // no listing has what it does not select
			}
			if !yield(shown, err) {
				return
			}
		}
	}
}

// Update implements [persist.Journal]. With one deliberate bug it forgets an operation in doubt, at the write that leaves it for a next attempt. With another
// one it loses the mark of an Enqueue.
func (j *faultyJournal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if j.bug == BugForgetInDoubt && rec.State == persist.StatePending && rec.MaybeSent && !rec.NextAttempt.IsZero() {
		return rec, j.Journal.Forget(ctx, rec)
	}
	if j.bug == BugEnqueueMarkLost && rec.Enqueued {
		if standing, err := j.Journal.Get(ctx, rec.ID); err == nil && !standing.Enqueued {
			return standing, nil
		}
	}
	rec, err := j.Journal.Update(ctx, rec)
	return j.read(rec), err
}

// Forget implements [persist.Journal]. It notes the ID, for BugStaleAnswer.
func (j *faultyJournal) Forget(ctx context.Context, rec persist.Record) error {
	j.mu.Lock()
	j.gone[rec.ID] = true
	j.mu.Unlock()
	return j.Journal.Forget(ctx, rec)
}

// Finish implements [persist.Journal]. With two deliberate bugs it drops a mark of the record. With two others it makes the next Flush do nothing.
func (j *faultyJournal) Finish(ctx context.Context, rec persist.Record) error {
	if j.bug == BugNeverUnreported {
		rec.Unreported = false
	}
	if j.bug == BugToldKeyForgotten {
		rec.KeyTold = false
	}
	refusal := rec.State == persist.StateConfirmed && rec.Answer != nil && rec.Answer.Status >= 400
	j.mu.Lock()
	if rec.Answer != nil {
		j.answer = rec.Answer
	}
	j.skipped = j.bug == BugLazyRefusal && refusal || j.bug == BugLazyMismatch && rec.State == persist.StateMismatched
	j.mu.Unlock()
	return j.Journal.Finish(ctx, rec)
}

// FinishLate implements [persist.LateFinisher]. Two bugs change it: the end is dropped, or the record gets the answer of the FinishLate before.
func (j *faultyJournal) FinishLate(ctx context.Context, rec persist.Record) error {
	j.mu.Lock()
	last := j.answer
	j.answer = rec.Answer
	j.mu.Unlock()
	switch {
	case j.bug == BugLateEndDropped:
		return nil
	case j.bug == BugLateEndsSwapped && last != nil:
		rec.Answer = last
	}
	return j.Journal.(persist.LateFinisher).FinishLate(ctx, rec)
}

// FinishesLate implements [persist.LateFinisher]. It returns j and not the embedded journal, so clients call j's FinishLate with its bugs.
func (j *faultyJournal) FinishesLate() persist.Journal { return j }

// Flush implements [persist.Journal]. After the Finish of a deliberate bug it does nothing, so that the end is not durable.
func (j *faultyJournal) Flush(ctx context.Context) error {
	j.mu.Lock()
	skipped := j.skipped
	j.mu.Unlock()
	if skipped {
		return nil
	}
	return j.Journal.Flush(ctx)
}
