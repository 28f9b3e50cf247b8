package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// unsettleName is the call in errors.
const unsettleName = "unsettle"

// Unsettle is oncehttp.Client.Unsettle.
func (c *Client) Unsettle(ctx context.Context, key, reason string, chosen Chosen) (was persist.Record, err error) {
	ctx, leave, err := c.visitKey(ctx, "Unsettle", unsettleName, key)
	if err != nil {
		return was, err
	}
	defer leave()
	if reason == "" || len(reason) > persist.NoteBytesMax {
		cause := fmt.Errorf("a reason of %d bytes, want 1 to %d", len(reason), persist.NoteBytesMax)
		return was, c.wrong(ctx, unsettleName, key, chosen, cause)
	}
	err = c.inPlace(ctx, unsettleName, key, chosen, func(call callers, id persist.ID) error {
		u := unsettle{successor{c.engine, call.Values(), unsettleName, operation.Unsettles, false}, reason}
		was, err = u.do(id, &chosen)
		return err
	})
	return was, err
}

// unsettle is one Unsettle under way.
type unsettle struct {
	successor
	reason string
}

// do takes the settlement back, and then looks once more for the next generation: a Do may have begun it meanwhile. If it has, the settlement
// is put back. It returns the record as it was settled.
func (u unsettle) do(id persist.ID, chosen *Chosen) (was persist.Record, err error) {
	rec, err := u.journal.Get(u.ctx, id)
	if err == nil {
		err = rec.Sealed()
	}
	if err != nil {
		return was, u.failed(&persist.Record{ID: id}, err)
	}
	if moved := chosen.moved(&rec, operation.End); moved != nil {
		return was, u.refusals.stale(u.ctx, unsettleName, &rec, moved)
	}
	for tries := 1; ; tries++ {
		found, err := u.look(&rec, nil)
		if err != nil {
			return was, u.failed(&rec, err)
		}
		if err := u.may(&rec, &found); err != nil {
			return was, err
		}
		if rec.HoldReason == persist.HoldReopened { // by an earlier call
			rec.Told = operation.WasTold(rec.Acts)
			return rec, nil
		}
		if rec.RequestGone() {
			cause := errors.New("the journal keeps its request no more")
			return was, u.refusals.refuse(u.ctx, unsettleName, &rec, operation.KeyOnly, cause, ErrConfig).err
		}
		held, err := u.journal.Amend(u.ctx, u.reopened(&rec))
		if err == nil {
			u.alike.Doubted(&held)
			return rec, u.lookAgain(&rec, &held)
		}
		if err := u.again(&rec, err, tries); err != nil {
			return was, err
		}
	}
}

// reopened returns the record as held. Its acts have the settlement, and this.
func (u unsettle) reopened(rec *persist.Record) persist.Record {
	op, next, now := operation.OpOf(rec, 0), rec.Clone(), u.now().Round(0)
	next.Acted(persist.Act{At: rec.Finished, Did: operation.SettledAs(rec), Note: rec.Note})
	next.Acted(persist.Act{At: now, Did: persist.ActReopened, Note: u.reason})
	reopened := op.Reopened()
	write(&next, reopened)
	next.OwedFrom = op.OwedAs(reopened.State, reopened.Hold, 0, now)
	next.Effect, next.Finished, next.Answer, next.Note = "", time.Time{}, nil, u.reason
	next.Unreported, next.KeyTold, next.Told = false, false, false
	u.unstamp(&next)
	return next
}

// lookAgain looks for what was begun in the place of the operation while it was reopened, and settles it as before if there is something.
func (u unsettle) lookAgain(was, held *persist.Record) error {
	found, err := u.look(held, nil)
	if err != nil {
		return u.failed(held, err)
	}
	refused := u.may(was, &found)
	if refused == nil {
		return nil
	}
	back := was.Clone()
	back.Revision = held.Revision
	op := operation.OpOf(held, 0)
	back.OwedFrom = op.OwedAs(back.State, "", 0, u.now())
	err = u.journal.Finish(u.ctx, back)
	if err == nil {
		err = u.journal.Flush(u.ctx)
	}
	return errors.Join(refused, err)
}
