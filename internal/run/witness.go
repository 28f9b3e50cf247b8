package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the events of an API as evidence of the effects of operations: operation.Testimony decides.

// testifyTries bounds the looks of Testify at an operation changed by others meanwhile.
const testifyTries = 100

// errChanges is the error of a Testify about an operation changed by others all the time.
var errChanges = errors.New("the operation changes all the time")

// witness writes the evidence of events into records. It is safe for concurrent use.
type witness struct {
	cfg     *Config
	journal persist.Journal
	leases  lease.Leases
	calls   *inflight.Table[*result]
	now     func() time.Time // by the journal's clock
	writer  *writer
}

// testify stores the evidence, if the operation can have it. A call under way with the operation keeps its lease.
func (w *witness) testify(ctx context.Context, seen persist.Record, evidence *persist.Evidence, created time.Time) (persist.Record, operation.Testimony, error) {
	for range testifyTries {
		rec, err := w.journal.Get(ctx, seen.ID)
		switch {
		case errors.Is(err, persist.ErrNotFound), err == nil && rec.Seq != seen.Seq:
			return rec, operation.TestifiesNothing, nil
		case err != nil:
			return rec, operation.TestifiesNothing, err
		}
		op := operation.OpOf(&rec, 0)
		said := op.Testimony(operation.IsEarlier(&rec, created))
		switch {
		case !op.StoresEvidence(said):
			return rec, said, nil
		case said == operation.Contradicts && rec.Erased: // it is told each time: nothing is written into an erased record
			return rec, said, nil
		case said == operation.Contradicts: // its end stays, and nobody begins it once more
			rec.Evidence = evidence
			if rec, err = w.journal.Amend(ctx, rec); errors.Is(err, persist.ErrStale) {
				continue
			}
			return rec, said, err
		}
		stored := op.WithEvidence()
		write(&rec, stored)
		rec.Evidence = evidence
		if !stored.Answered {
			rec.Answer = nil
		}
		w.leases.Keep(&rec)
		switch rec, err = w.journal.Update(ctx, rec); {
		case err == nil:
			w.testified(ctx, &rec)
			return rec, said, nil
		case !errors.Is(err, persist.ErrStale):
			return rec, operation.TestifiesNothing, err
		}
	}
	return seen, operation.TestifiesNothing, errChanges
}

// provenBy returns the cause of an error for an act against the evidence of a record.
func provenBy(rec *persist.Record) error {
	return fmt.Errorf("an event of the API proves that it happened (%s %s); Resume settles it so", rec.Evidence.Type, rec.Evidence.Event)
}

// endByEvidence settles an operation as happened, durably. told: a caller is told of the end now.
func (w *witness) endByEvidence(ctx context.Context, rec *persist.Record, told bool) error {
	return w.writer.change(ctx, rec, func() error {
		before, now := *rec, w.now().Round(0)
		op := operation.OpOf(rec, 0)
		settled := op.Settled(persist.EffectHappened, 0)
		write(rec, settled)
		rec.Effect, rec.Finished, rec.Answer, rec.LeaseOwner = persist.EffectHappened, now, nil, ""
		rec.Unreported, rec.Told = op.EndsUnreported(told), rec.Told || told
		err := finishNow(ctx, w.cfg, before, *rec)
		if err != nil {
			*rec = before
		}
		return err
	})
}

// endProven ends a run, before its drive, by the evidence in its record.
func (x existing) endProven() *result {
	ctx := x.call.Values()
	if err := x.witness.endByEvidence(ctx, &x.rec, !x.given.Pass); err != nil {
		return &result{err: journalError(x.name, &x.rec, err), unwritten: true}
	}
	if !x.given.Pass {
		return x.refuseSame(nil, ErrSettled, ErrAnswerGone)
	}
	a := &answer{result: x.resultWith(OutcomeConfirmed, SourceJournal)}
	a.result.Effect = persist.EffectHappened
	if x.heard() {
		event := x.event(EventFinished)
		event.Outcome, event.Rule = a.result.Outcome, ruleOfEvidence
		x.tell(event)
	}
	return &result{answer: a}
}

// testified tells of evidence stored in a record.
func (w *witness) testified(ctx context.Context, rec *persist.Record) {
	event := eventOf(EventWitnessed, rec, w.calls.Number(), w.cfg.stopwatch())
	event.Rule = ruleOfEvidence
	w.cfg.observe(ctx, event)
	w.cfg.log(ctx, slog.LevelInfo, "an event of the API proves that the operation happened", rec.Key, nil)
}

// contradicted tells of an event that contradicts the end of an operation. The record does not change.
func (w *witness) contradicted(ctx context.Context, rec *persist.Record, evidence *persist.Evidence) {
	event := eventOf(EventContradicted, rec, w.calls.Number(), w.cfg.stopwatch())
	event.Rule = ruleOfEvidence
	event.Err = fmt.Errorf("the event %q of type %q says that it happened, and its record is %v", evidence.Event, evidence.Type, rec.State)
	w.cfg.observe(ctx, event)
	w.cfg.log(ctx, slog.LevelError, "an event of the API contradicts the end of the operation", rec.Key, event.Err)
}
