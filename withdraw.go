package oncehttp

import (
	"errors"
	"log/slog"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds what happens to a record whose run provably had no effect.

// withdraw ends a run that provably had no effect. It forgets an operation that this call began, unless that was
// enqueued meanwhile; if its key is free then, the error is ErrNoEffect. Any other stays pending, as never sent, and the error
// is ErrOutcomeUnknown, since Resume will send it.
func (d ending) withdraw() *result {
	why := ErrRefused
	if d.verdict.outcome == OutcomeNotSent {
		why = ErrNotSent
	}
	ctx, forgotten := d.call.Values(), false
	if d.created && !d.rec.Enqueued {
		if keep, err := d.keepsPlace(ctx, &d.rec); keep || err != nil {
			return d.settleAbsent(why, err)
		}
	}
	watch := d.shared.begins.Watch(d.rec.ID)
	err := d.change(ctx, &d.rec, func() error {
		if forgotten = d.created && !d.rec.Enqueued; forgotten {
			return d.journal.Forget(ctx, d.rec)
		}
		rec := d.counted()
		rec.MaybeSent, rec.FirstSent = false, time.Time{}
		rec.NextAttempt = d.notBefore(&rec)
		d.leaveAside()
		return d.update(rec)
	})
	standing := operation.Open
	switch {
	case !forgotten:
		logUnrecorded(d, err)
		d.wake()
	case err == nil:
		standing = d.afterForget()
	default:
		d.cfg.log(ctx, slog.LevelError, "an operation without effect could not be forgotten", d.rec.Key, err)
		d.stop = err
	}
	if standing == operation.None {
		d.freed = &watch
	} else {
		watch.End()
	}
	if standing == operation.Unclear && (d.rec.MaybeSent || why == ErrRefused) { // by whoever has begun it anew
		why = nil
	}
	return d.fail(standing, why)
}

// stillFree ends the watch over a key that this run has freed. Where another call has begun it anew since, while Config.Observe was told
// of the end, say, the result says that instead of "no effect".
func (r *run) stillFree(res *result) {
	if r.freed == nil || !r.freed.End() {
		return
	}
	r.last.Drain()
	res.answer, res.err = nil, ending{r}.failed(operation.Unclear)
}

// settleAbsent ends a run that provably had no effect, and whose record keeps the first place of its key: it is settled as absent. err is
// that of the journal, which did not say whether it does.
func (d ending) settleAbsent(why, err error) *result {
	if err == nil {
		err = d.finish(persist.StateSettled, d.journal.Finish)
	}
	if err != nil {
		d.stop = err
		return d.fail(operation.Unclear, why)
	}
	return d.fail(operation.Absent, why)
}

// afterForget returns how the key stands whose record this run has forgotten: another call, or process, may have begun it anew.
func (d ending) afterForget() operation.Standing {
	if d.rec.Generated && !d.rec.Business && d.cfg.randomKeys { // nobody else knows the key
		return operation.None
	}
	rec, err := d.probe(d.call.Values(), d.rec.ID)
	switch {
	case errors.Is(err, persist.ErrNotFound) && !d.shared.notes.MayAppear(d.rec.ID, d.now()):
		return operation.None
	case err == nil:
		d.rec = rec
	}
	return operation.Unclear
}
