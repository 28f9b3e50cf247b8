package run

import (
	"context"
	"errors"
	"log/slog"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the end of a hold for an unread answer. The client with the answer could not read it, since it has other facts than the
// record's.

// endUnread ends such an operation by its recorded answer, if the answer is a success by the facts of the record and this client has these
// facts. Nothing is sent. The result is nil if the operation stays held.
func (x existing) endUnread() *result {
	a, op := x.rec.Answer, operation.OpOf(&x.rec, 0)
	if !op.IsUnread() {
		return nil
	}
	x.readBy(x.profileOf(x.call, &x.rec))
	from, err := request.URL(&x.rec)
	if x.prof == nil || x.given.OtherFacts || err != nil || x.lacks().Need != operation.Nothing {
		return nil
	}
	if _, missing := readsDropped(x.prof, a.Dropped, anyList); missing != "" || hidesErrors(&x.rec) {
		return nil // the client with the answer had other facts, and kept no value that these read
	}
	read := x.hear(wire.Result{Answer: wire.Recorded(from, a.Status, a.Header, a.Body, !a.BodyDropped)})
	read.Answer.Dropped = a.Dropped
	v := x.classify(&read.Result, true)
	if !op.EndsUnread(v) {
		return nil
	}
	v.Replayed = a.Replayed
	x.last = read
	x.drive = operation.EndedBy(x.op(), x.cfg.drives, x.givenNow(), v, operation.Answer{ID: read.id, Status: a.Status})
	err = x.clock.Notice(x.call.Values(), x.host)
	if err == nil {
		err = ending(x).conclude(x.journal.Finish)
	}
	var now persist.Record
	if err == nil {
		now, err = x.journal.Get(x.call.Values(), x.rec.ID)
	}
	if err != nil {
		return &result{err: journalError(x.name, &x.rec, err), unwritten: true}
	}
	if x.rec = now; now.State == persist.StateConfirmed && now.Answer != nil && !now.Answer.BodyDropped {
		return x.answerFromJournal()
	}
	return x.refusals.refuse(x.call.Values(), x.name, &x.rec, operation.Same, nil, ErrAnswerGone)
}

// endAllUnread ends such holds of this account. An operation run by another call is left to the next time; other
// failures of one operation are logged. Errors: the journal's, of the listing.
func (c *Client) endAllUnread(ctx context.Context) error {
	for rec, err := range c.cfg.Journal.List(ctx, persist.Query{Account: c.account(ctx), States: []persist.State{persist.StateHeld}}) {
		op := operation.OpOf(&rec, 0)
		switch {
		case persist.OfOneRecord(err):
			continue
		case err != nil:
			return err
		case !op.IsUnread() || c.cfg.lacksClaimed(&rec).Need != operation.Nothing:
			continue
		}
		err := c.holding(ctx, "run", rec, func(call callers, id persist.ID) error {
			now, err := c.engine.journal.Get(call.Values(), id)
			if err != nil {
				return err
			}
			x := existing{c.engine.newRun(call, "run", c.cfg.stopwatch())}
			x.rec, x.given.Pass = now, true
			if res := x.endUnread(); res != nil {
				x.tellRecorded(res)
				return res.err
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrInFlight) {
			c.cfg.log(ctx, slog.LevelWarn, "a recorded answer could not be read again", rec.Key, err)
		}
	}
	return nil
}

// endUnread ends the holds for an unread answer, and tells of an error.
func (r *runner) endUnread(ctx context.Context) {
	if err := r.endAllUnread(ctx); err != nil && ctx.Err() == nil && r.draining.Err() == nil {
		r.cfg.blocked(ctx, &persist.Record{}, err)
		r.cfg.log(ctx, slog.LevelError, "held operations could not be listed", "", err)
	}
}
