package batch

import (
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// A person may have begun another operation in the place of a row's, by journal redrive or rekey. The run is told of that one then, and sends nothing. If
// that one succeeded, with the row's bytes, the row is done.

// doneInPlace returns the line that is printed for the operation that a person began in place of rec, the record of a row (journal redrive or rekey), if that one
// succeeded. Then the row is done. done is false if there is no such operation, or if it has not succeeded.
func (b *batch) doneInPlace(ctx context.Context, rec *persist.Record) (l results.Line, done bool) {
	by, is := b.replacement(ctx, rec)
	if !is || !isSuccess(b.flags.Declines.ResultOfRecord(&by)) {
		return results.Line{}, false
	}
	return b.flags.Declines.Confirmed(&by), true
}

// openInPlace changes the line that is printed for a row: a person has begun the operation by in place of the row's own, and by is pending, so that the outcome of
// the row is unknown, and the same command goes on with it later (GoesOn). If by is not pending, the line stays.
func openInPlace(l *results.Line, by *persist.Record) {
	if by.State == persist.StatePending {
		l.Result, l.Outcome, l.State, l.Exit, l.GoesOn = results.Unknown, oncehttp.OutcomeUnknown.String(), by.State.String(), terminal.ExitUnknown, true
		if l.Error != nil {
			l.Error.Code = "begun_anew"
		}
	}
}

// isSuccess reports whether a result means that the request took effect, or was accepted by the API. A row with such a result is not sent again.
func isSuccess(r results.Result) bool { return r == results.Done || r == results.Accepted }

// replaced returns the class (the state, such as done) for a row whose operation rec a person has replaced by another one (journal redrive or rekey) that took
// effect, or may have. A run sends nothing for such a row; the dry run notes why. It returns "" if there is no such replacement.
func (d *dryRun) replaced(ctx context.Context, r *input.Row, rec *persist.Record) results.Class {
	by, is := d.replacement(ctx, rec)
	if !is {
		return ""
	}
	d.note(r, fmt.Sprintf("a person began %q to replace %q; nothing is sent for this row", by.Key, rec.Key))
	if by.State == persist.StateHeld {
		return results.ClassHeld
	}
	if of := d.flags.Declines.ResultOfRecord(&by); isSuccess(of) {
		return results.Class(of)
	}
	if by.State == persist.StatePending {
		return results.ClassPending
	}
	return results.Class(results.Mismatch) // as a run calls a row whose key stands for something else
}

// replacedEarlier returns the class (the state) of a row if a person has replaced its generation before this run's, the try before, by an operation under another
// key. Then a run begins no new generation. foresee calls it for a row without a record; "" means that the row may be sent.
func (d *dryRun) replacedEarlier(ctx context.Context, r *input.Row) results.Class {
	if d.plan.generation < 2 {
		return ""
	}
	by := d.rekeyed(ctx, r, d.plan.generation-1)
	if by == "" {
		return ""
	}
	rec, err := d.lookup(ctx, d.plan.keyOf(r, d.plan.generation-1))
	if err != nil {
		return ""
	}
	if c := d.replaced(ctx, r, &rec); c != "" {
		return c
	}
	d.note(r, fmt.Sprintf("a person began %q to replace generation %d; no generation is begun beside it", by, d.plan.generation-1)) // it took no effect
	return results.Class(results.Mismatch)
}

// replacement follows the keys in ReplacedBy from rec to the last operation that persons began in its place. is reports whether that one took effect, or may have. If
// the journal does not have its record, it may have, and by has the key alone.
func (b *batch) replacement(ctx context.Context, rec *persist.Record) (by persist.Record, is bool) {
	op, by := operation.OpOf(rec, 0), *rec                                     // 0: for how long the API knows the key, the record says
	for links := 0; by.ReplacedBy != "" && links < intent.IntentMax; links++ { // bounded, should the keys form a circle
		next, err := b.session.Journal.Get(ctx, persist.ID{Account: by.Account, Key: by.ReplacedBy})
		if err != nil || !intent.IsSuccessor(&by, &next) { // its record is gone, or is not what was begun in the place: nothing is known of its effect
			return persist.Record{ID: persist.ID{Account: by.Account, Key: by.ReplacedBy}}, intent.IsReplacedBy(&op, &operation.Op{}) // an empty Op: it may have taken effect
		}
		by = next
	}
	if by.Key == rec.Key {
		return by, false
	}
	last := operation.OpOf(&by, 0) // 0: for how long the API knows the key, the record says
	return by, intent.IsReplacedBy(&op, &last)
}
