package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds what follows from an event about an operation that was erased: evidence is not written into its
// record, so that the next generations of its key would not find it.

// holdNext holds the later tries (generations) of an erased operation that an event proves: they wait for a person, since a second effect is possible.
// intent.WaitsForErased decides. One that a call or a process runs at this moment is not held. Errors: the journal's; after an error the API sends the event again.
func (j eventJournal) holdNext(ctx context.Context, old *persist.Record, evidence *persist.Evidence) error {
	e := j.c.engine
	// The keys of later generations follow from the key: no record has to name them. All are looked at (false): a caller may know of the end, and have counted on.
	// Before reads at the place of old, and at the other places of its account.
	for _, key := range intent.GenerationsAbove(old.Key, false) {
		next, err := e.places.Before(ctx, old, key)
		switch {
		case errors.Is(err, persist.ErrNotFound):
			continue
		case err != nil:
			return err
		}
		// Asked without the lease: holdOne asks again with it, for the record as it is then.
		if op := operation.OpOf(&next, 0); !intent.WaitsForErased(&op, false) {
			continue
		}
		note := fmt.Sprintf("the earlier operation %q took effect: an event of the API says so (%s %s)", old.Key, evidence.Type, evidence.Event)
		err = j.c.holding(ctx, "webhook", next, func(_ callers, id persist.ID) error { return j.holdOne(ctx, id, note) })
		if err != nil && !errors.Is(err, ErrInFlight) {
			return err
		}
	}
	return nil
}

// holdOne holds one later operation of the key for a person, and reports it: an event of the API proves that the erased operation before it took effect. note says
// so in the record. OnResult may get the hold at once: without a grace (0) for somebody else. It returns nil, too, if the operation need not be held, or is gone;
// errChanges if the record changes all the time.
func (j eventJournal) holdOne(ctx context.Context, id persist.ID, note string) error {
	e := j.c.engine
	for range testifyTries {
		rec, err := e.journal.Get(ctx, id)
		if errors.Is(err, persist.ErrNotFound) {
			return nil
		}
		op := operation.OpOf(&rec, 0)
		if err != nil || !intent.WaitsForErased(&op, e.holder.leasedElsewhere(&rec)) {
			return err
		}
		held := acts.HeldFor(op, persist.HoldPredecessor)
		write(&rec, held)
		rec.OwedFrom, rec.Note = operation.OwedAs(&op, held.State, held.Hold, 0, e.now()), strings.ToValidUTF8(note[:min(len(note), persist.NoteBytesMax)], "")
		// A lease that has ended goes, so that the hold is free for everybody. The update fails (ErrStale) if somebody has changed the record since.
		e.unstamp(&rec)
		switch _, err = e.journal.Update(ctx, rec); {
		case err == nil:
			event := eventOf(EventHeld, &rec, e.shared.calls.Number(), newStopwatch(e.cfg))
			event.Hold, event.Rule = held.Hold, ruleOfEvidence
			e.cfg.observe(ctx, event)
			e.cfg.log(ctx, slog.LevelWarn, "an operation is held, since an event proves an earlier one", rec.Key, nil)
			// The hold is a result for OnResult.
			e.owes()
			return nil
		case !errors.Is(err, persist.ErrStale):
			return err
		}
	}
	return errChanges
}
