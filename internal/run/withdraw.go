package run

import (
	"context"
	"errors"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the watch over the key of an operation provably without an effect. Its record is forgotten.

// watch begins to watch the key about to be freed by the record, once in a run. stillFree or endWatch must follow.
func (d ending) watch() {
	if d.watched == nil {
		watch := d.shared.begins.Watch(d.rec.ID)
		d.watched = &watch
	}
}

// endWatch ends the watch over a key not free. A free key is watched until callers have their result.
func (d ending) endWatch(free bool) {
	if d.watched != nil && !free {
		d.watched.End()
		d.watched = nil
	}
}

// stillFree ends the watch over a key freed by this run. If another call has begun it anew since, for example while Config.Observe was told
// of the end, the result says "unclear" instead of "no effect".
func (r *run) stillFree(res *result) {
	if r.watched == nil || !r.watched.End() {
		return
	}
	r.last.Drain()
	report := operation.BegunSince()
	res.answer, res.err = nil, ending{r}.error(&report)
}

// lookForOther does the step LookForOther.
func (d ending) lookForOther(ctx context.Context) {
	rec, err := d.unbegun.probe(ctx, d.rec.ID)
	// A begin by a call of this process is looked for later, by stillFree.
	freed := operation.Freed{Forgotten: true, Gone: errors.Is(err, persist.ErrNotFound), MayAppear: d.shared.notes.MayAppear(d.rec.ID, d.now())}
	free := freed.IsFree()
	if err == nil {
		d.rec = rec
		d.drive.Moved(d.op())
	}
	d.drive.OtherFound(!free)
}
