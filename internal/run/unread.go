package run

import (
	"context"
	"errors"
	"log/slog"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the end of a hold for an unread answer. The client with the answer could not read it, since
// it has other facts than the record's.

// endUnread ends an operation that is held since the client that got its answer could not read it. The recorded answer must be a success by the facts of the
// record, and this client must have these facts. Nothing is sent. The answer must end the operation although an earlier send may have had an effect (true). The
// result is nil if the operation stays held.
func (x existing) endUnread() *result {
	t := x.task
	a, op := t.rec.Answer, operation.OpOf(&t.rec, 0)
	if !operation.IsUnread(&op) {
		return nil
	}
	// By the facts of the record, which the client with the answer did not have.
	t.readBy(t.engine.profileOf(t.call, &t.rec))
	// For the Location of a redirect, which is relative to it.
	from, err := request.URL(&t.rec)
	reader := acts.AnswerReader{Knows: t.prof != nil && !t.given.OtherFacts && err == nil, Need: t.lacks().Need}
	if reader.Knows { // the client with the answer had other facts, and may have kept no value that these read
		_, missing := readsDropped(t.prof, a.Dropped, anyList)
		reader.Whole = missing == "" && !hidesErrors(&t.rec)
	}
	if !reader.Reads() {
		return nil
	}
	// The recorded answer is heard as if it had just come, so that one way of reading is for both.
	read := x.replies.hear(wire.Result{Answer: wire.Recorded(from, a.Status, a.Header, a.Body, !a.BodyDropped)})
	read.Answer.Dropped = a.Dropped
	v := x.replies.classify(&read.Result, true)
	if !operation.EndsUnread(&op, v) {
		return nil
	}
	// The mark of a replay may be in a header that was not recorded.
	v.Replayed = a.Replayed
	x.replies.last = read
	t.drive = operation.EndedBy(t.op(), t.cfg.drives, t.givenNow(), v, operation.Answer{ID: read.id, Status: a.Status})
	// The end is stamped by the journal's clock.
	err = t.notice()
	if err == nil {
		err = x.ending.conclude(t.journal.Finish)
	}
	var now persist.Record
	if err == nil {
		// As the journal has it now: the answer may not be kept whole.
		now, err = t.journal.Get(t.call.Values(), t.rec.ID)
	}
	if err != nil {
		return &result{err: journalError(t.name, &t.rec, err), unwritten: true}
	}
	if t.rec = now; now.State == persist.StateConfirmed && now.Answer != nil && !now.Answer.BodyDropped {
		return x.answerFromJournal()
	}
	return t.engine.refusals.refuse(t.call.Values(), t.name, &t.rec, operation.Same, nil, ErrAnswerGone)
}

// endAllUnread ends all operations of this account that are held for an answer which another client could not read (endUnread). An operation run by
// another call is left to the next time; other failures of one operation are logged. Errors: the journal's, of the listing.
func endAllUnread(ctx context.Context, c *Client) error {
	for rec, err := range c.cfg.Journal.List(ctx, persist.Query{Account: c.account(ctx), States: []persist.State{persist.StateHeld}}) {
		op := operation.OpOf(&rec, 0)
		switch {
		case persist.OfOneRecord(err):
			continue
		case err != nil:
			return err
		case !operation.IsUnread(&op) || c.cfg.gate().lacksClaimed(&rec).Need != acts.Nothing:
			continue
		}
		err := c.holding(ctx, "run", rec, func(call callers, id persist.ID) error {
			now, err := c.engine.journal.Get(call.Values(), id)
			if err != nil {
				return err
			}
			x := newRun(c.engine, call, "run", newStopwatch(&c.cfg)).existing()
			// As in a pass: no caller waits, and nothing is sent.
			x.task.rec, x.task.given.Pass = now, true
			if res := x.endUnread(); res != nil {
				x.report.tellRecorded(res)
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

// endUnread runs endAllUnread for a Run, and logs an error.
func endUnread(ctx context.Context, c *Client) {
	if err := endAllUnread(ctx, c); err != nil && ctx.Err() == nil && c.draining.Err() == nil {
		blocked(ctx, &c.cfg, &persist.Record{}, err)
		c.cfg.log(ctx, slog.LevelError, "held operations could not be listed", "", err)
	}
}
