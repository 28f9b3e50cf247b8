package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the events of an API as evidence of the effects of operations: acts.TestimonyOf decides.

// testifyTries bounds the looks of Testify at an operation changed by others meanwhile.
const testifyTries = 100

// errChanges is the error of a Testify about an operation changed by others all the time.
var errChanges = errors.New("the operation changes all the time")

// witness writes the evidence of events into records. It is safe for concurrent use.
type witness struct {
	cfg     *Config
	journal persist.Journal
	leases  lease.Leases             // keep that of a run under way
	calls   *inflight.Table[*result] // number the events
	now     func() time.Time         // by the journal's clock
	writer  *writer                  // writes the end
}

// testify stores an event of the API, as evidence, in the record that the event is about, and returns the record and what the event says of its operation. seen is the record as
// it was listed, created the time of the event. Where acts.StoresEvidence says no, nothing is written, and what the event says is returned all the same; nor is anything written
// into an erased record that has ended: it is not read again, since it may be in an account of which only a digest is known. If the record is gone by now, or its key has a new
// one (another Seq), the event says nothing, which is no error. An event that proves the effect ends a hold, and the answer for which it was held is dropped. A call in progress
// keeps its lease.
func (w *witness) testify(ctx context.Context, seen persist.Record, evidence *persist.Evidence, created time.Time) (persist.Record, acts.Testimony, error) {
	if seen.Erased && seen.State.Final() {
		op := operation.OpOf(&seen, 0)
		return seen, acts.TestimonyOf(&op, acts.IsEarlier(&seen, created)), nil
	}
	for range testifyTries {
		rec, err := w.journal.Get(ctx, seen.ID)
		switch {
		case errors.Is(err, persist.ErrNotFound), err == nil && rec.Seq != seen.Seq:
			return rec, acts.TestifiesNothing, nil
		case err != nil:
			return rec, acts.TestifiesNothing, err
		}
		op := operation.OpOf(&rec, 0)
		said := acts.TestimonyOf(&op, acts.IsEarlier(&rec, created))
		switch {
		case !acts.StoresEvidence(&op, said):
			return rec, said, nil
		case said == acts.Contradicts && rec.Erased: // it is told each time: nothing is written into an erased record
			return rec, said, nil
		case said == acts.Contradicts: // its end stays, and nobody begins it once more
			rec.Evidence = evidence
			if rec, err = w.journal.Amend(ctx, rec); errors.Is(err, persist.ErrStale) {
				continue
			}
			return rec, said, err
		}
		stored := acts.WithEvidence(op)
		write(&rec, stored)
		rec.Evidence = evidence
		if !stored.Answered {
			rec.Answer = nil
		}
		// The write would else end the lease of a run under way.
		w.leases.Keep(&rec)
		switch rec, err = w.journal.Update(ctx, rec); {
		case err == nil:
			w.testified(ctx, &rec)
			return rec, said, nil
		case !errors.Is(err, persist.ErrStale):
			return rec, acts.TestifiesNothing, err
		}
	}
	return seen, acts.TestifiesNothing, errChanges
}

// provenBy returns the cause of the error for a person's act that contradicts the evidence in a record: an event of the API proves that the operation happened.
func provenBy(rec *persist.Record) error {
	return fmt.Errorf("an event of the API proves that it happened (%s %s); Resume settles it so", rec.Evidence.Type, rec.Evidence.Event)
}

// contradictedBy returns the cause of an error about a record whose end is contradicted by its evidence, an event of the API; nil if none contradicts it.
func contradictedBy(rec *persist.Record) error {
	if op := operation.OpOf(rec, 0); !op.IsContradicted() {
		return nil
	}
	return fmt.Errorf("an event of the API contradicts its end, and says that it happened (%s %s); look at the API", rec.Evidence.Type, rec.Evidence.Event)
}

// endByEvidence settles an operation as happened, durably, since an event of the API proves its effect. told: a caller is told of the end now.
func (w *witness) endByEvidence(ctx context.Context, rec *persist.Record, told bool) error {
	return w.writer.change(ctx, rec, func() error {
		before, now := *rec, w.now().Round(0)
		op := operation.OpOf(rec, 0)
		// No status: there is no answer.
		settled := acts.Settled(op, persist.EffectHappened, 0)
		write(rec, settled)
		// Without an answer: the event proves the effect, and not how the API would have answered.
		rec.Effect, rec.Finished, rec.Answer = persist.EffectHappened, now, nil
		rec.Unreported, rec.Told = acts.SettlesUnreported(&op, rec.Effect, told), rec.Told || told
		err := w.writer.finishNow(ctx, before, *rec)
		if err != nil {
			// The caller goes on with the record as it is in the journal.
			*rec = before
		}
		return err
	})
}

// endProven ends a run, before its first send, by the evidence in its record: an event of the API proves the effect, so nothing is sent. A pass gives
// the end as its result. A call gets an error, since the answer itself is not known.
func (x existing) endProven() *result {
	t := x.task
	ctx := t.call.Values()
	if err := t.engine.witness.endByEvidence(ctx, &t.rec, !t.given.Pass); err != nil {
		return &result{err: journalError(t.name, &t.rec, err), unwritten: true}
	}
	if !t.given.Pass {
		// The verdict is ErrFinal: it took effect, and the answer is not known.
		return x.refuseSame(nil, ErrSettled, ErrAnswerGone)
	}
	a := &answer{result: t.resultWith(OutcomeConfirmed, SourceJournal)}
	a.result.Effect = persist.EffectHappened
	if x.report.heard() {
		event := x.report.event(EventFinished)
		event.Outcome, event.Rule = a.result.Outcome, ruleOfEvidence
		x.report.tell(event)
	}
	return &result{answer: a}
}

// testified tells Config.Observe and the log that an event of the API, now stored in the record, proves the operation's effect.
func (w *witness) testified(ctx context.Context, rec *persist.Record) {
	event := eventOf(EventWitnessed, rec, w.calls.Number(), newStopwatch(w.cfg))
	event.Rule = ruleOfEvidence
	w.cfg.observe(ctx, event)
	w.cfg.log(ctx, slog.LevelInfo, "an event of the API proves that the operation happened", rec.Key, nil)
}

// contradicted tells of an event that contradicts the end of an operation. The record does not change.
func (w *witness) contradicted(ctx context.Context, rec *persist.Record, evidence *persist.Evidence) {
	event := eventOf(EventContradicted, rec, w.calls.Number(), newStopwatch(w.cfg))
	event.Rule = ruleOfEvidence
	event.Err = fmt.Errorf("the event %q of type %q says that it happened, and its record is %v", evidence.Event, evidence.Type, rec.State)
	w.cfg.observe(ctx, event)
	w.cfg.log(ctx, slog.LevelError, "an event of the API contradicts the end of the operation", rec.Key, event.Err)
}
