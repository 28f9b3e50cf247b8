package run

import (
	"context"
	"errors"

	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the watch over the key of an operation provably without an effect. Its record is forgotten.

// keyWatch is the watch of a run over the key that it frees. The zero value watches nothing.
type keyWatch struct{ of *known.Watch }

// begin begins to watch the key that this run is about to free by forgetting its record: does another call begin it anew? It is called once in a run.
// endUnless or isBegun must follow.
func (w *keyWatch) begin(begins *known.Begins, id persist.ID) {
	if w.of == nil {
		watch := begins.Watch(id)
		w.of = &watch
	}
}

// endUnless ends the watch for a new begin of the key, unless the key is free. Then the watch goes on until the callers have their result.
func (w *keyWatch) endUnless(free bool) {
	if w.of != nil && !free {
		w.of.End()
		w.of = nil
	}
}

// isBegun ends the watch, and reports whether another call has begun the key anew since begin. It is false if
// nothing was watched.
func (w *keyWatch) isBegun() bool { return w.of != nil && w.of.End() }

// stillFree ends the watch over a key freed by this run. It is called once the end of the run is told. If
// another call has begun it anew since, for example while Config.Observe was told of the end, the result says
// "unclear" instead of "no effect".
func (d *ending) stillFree(res *result) {
	if !d.watched.isBegun() {
		return
	}
	d.replies.last.Drain()
	report := operation.BegunSince()
	res.answer, res.err = nil, d.error(&report)
}

// lookForOther does the step LookForOther: after the record was forgotten, it looks whether the key is still free. Another process may have begun it
// anew, or a lost begin of it may still appear. Then the error may not say that there is no effect.
func (d *ending) lookForOther(ctx context.Context) {
	t := d.task
	rec, err := t.engine.unbegun.probe(ctx, t.rec.ID)
	// A begin by a call of this process is looked for later, by stillFree.
	freed := operation.Freed{Forgotten: true, Gone: errors.Is(err, persist.ErrNotFound), MayAppear: t.engine.shared.notes.MayAppear(t.rec.ID, t.engine.clock.Earliest())}
	free := freed.IsFree()
	if err == nil {
		t.rec = rec
		t.drive.Moved(t.op())
	}
	t.drive.OtherFound(!free)
}
