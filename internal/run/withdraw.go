package run

import (
	"context"
	"errors"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the key of an operation that provably had no effect, whose record is forgotten.

// watch begins to watch the key that the record is about to free.
func (d ending) watch() {
	if d.watched == nil {
		watch := d.shared.begins.Watch(d.rec.ID)
		d.watched = &watch
	}
}

// endWatch ends the watch over a key that is not free. A free one is watched until callers have their result.
func (d ending) endWatch(free bool) {
	if d.watched != nil && !free {
		d.watched.End()
		d.watched = nil
	}
}

// stillFree ends the watch over a key that this run has freed. Where another call has begun it anew since, while Config.Observe was told
// of the end, say, the result says that instead of "no effect".
func (r *run) stillFree(res *result) {
	if r.watched == nil || !r.watched.End() {
		return
	}
	r.last.Drain()
	res.answer, res.err = nil, ending{r}.error(&operation.Report{Standing: operation.Unclear, AsRecorded: true})
}

// lookForOther does the step LookForOther.
func (d ending) lookForOther(ctx context.Context) {
	rec, err := d.probe(ctx, d.rec.ID)
	free := errors.Is(err, persist.ErrNotFound) && !d.shared.notes.MayAppear(d.rec.ID, d.now())
	if err == nil {
		d.rec = rec
		d.drive.Moved(d.op())
	}
	d.drive.OtherFound(!free)
}
