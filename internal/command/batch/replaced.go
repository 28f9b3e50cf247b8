package batch

import (
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// A person may have begun another operation in the place of a row's, by journal redrive or rekey. The run is told of that one then, and sends nothing.

// replaced returns the class of a row in whose place such an operation took effect, or may, and notes the key of it; "" if there is none.
func (d *dryRun) replaced(ctx context.Context, r *input.Row, rec *persist.Record) results.Class {
	by, is := d.replacement(ctx, rec)
	if !is {
		return ""
	}
	d.note(r, fmt.Sprintf("a person began %q to replace %q; nothing is sent for this row", by.Key, rec.Key))
	if by.State == persist.StateHeld {
		return results.ClassHeld
	}
	return results.Class(results.Mismatch)
}

// replacedEarlier is replaced for a row whose generation is new, by its generation before.
func (d *dryRun) replacedEarlier(ctx context.Context, r *input.Row) results.Class {
	if d.plan.generation < 2 {
		return ""
	}
	rec, err := d.lookup(ctx, d.plan.keyOf(r, d.plan.generation-1))
	if err != nil || rec.ReplacedBy == string(d.plan.keyOf(r, d.plan.generation)) {
		return ""
	}
	return d.replaced(ctx, r, &rec)
}

// replacement returns the last operation begun to replace another one, and whether it took effect, or may. If the journal does not have it, it may have.
func (b *batch) replacement(ctx context.Context, rec *persist.Record) (by persist.Record, is bool) {
	op, by := operation.OpOf(rec, 0), *rec
	for links := 0; by.ReplacedBy != "" && links < operation.IntentMax; links++ {
		next, err := b.session.Journal.Get(ctx, persist.ID{Account: by.Account, Key: by.ReplacedBy})
		if err != nil || !operation.IsSuccessor(&by, &next) {
			return persist.Record{ID: persist.ID{Account: by.Account, Key: by.ReplacedBy}}, op.IsReplacedBy(&operation.Op{})
		}
		by = next
	}
	if by.Key == rec.Key {
		return by, false
	}
	last := operation.OpOf(&by, 0)
	return by, op.IsReplacedBy(&last)
}
