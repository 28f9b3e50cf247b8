package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// unsettleName is the call in errors.
const unsettleName = "unsettle"

// Unsettle implements oncehttp.Client.Unsettle: it takes a settlement back, and returns the record as it was settled. chosen has the options of the call, such as
// the record as the person saw it.
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
		// false: it is allowed also if a caller was told of the end.
		u := unsettle{successor{c.engine, call.Values(), unsettleName, acts.Unsettles, false}, reason}
		was, err = u.do(id, &chosen)
		return err
	})
	return was, err
}

// unsettle is one Unsettle under way.
type unsettle struct {
	successor
	reason string // for the record
}

// do takes the settlement back, and then looks once more for the next generation (a later try): a Do may have begun it meanwhile. If it has, the settlement is put
// back. It returns the record as it was settled; if an earlier call, cut off since, has taken the settlement back already, the record as it is now.
func (u unsettle) do(id persist.ID, chosen *Chosen) (was persist.Record, err error) {
	rec, err := u.journal.Get(u.ctx, id)
	if err == nil {
		err = rec.Sealed()
	}
	if err != nil {
		return was, u.failed(&persist.Record{ID: id}, err)
	}
	// acts.End: each change since counts, since none can be the act's own.
	if moved := chosen.moved(&rec, acts.End); moved != nil {
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
		switch acts.MayReopen(&rec) {
		case acts.IsReopened: // a call that was cut off after its write is made again
			rec.Told = acts.WasTold(rec.Acts)
			return rec, nil
		case acts.IsGone:
			cause := errors.New("the journal keeps its request no more")
			return was, u.refusals.refuse(u.ctx, unsettleName, &rec, operation.KeyOnly, cause, ErrConfig).err
		}
		// As held: a person decides about it next.
		held, err := u.journal.Amend(u.ctx, u.reopened(&rec))
		if err == nil {
			// An identical request without a key must not be sent beside it.
			u.alike.Doubted(&held)
			return rec, u.lookAgain(&rec, &held)
		}
		if err := u.again(&rec, err, tries); err != nil {
			return was, err
		}
	}
}

// reopened returns the record after the settlement was taken back (acts.ReopenedRecord): held for a person, and without a lease. It writes nothing.
func (u unsettle) reopened(rec *persist.Record) persist.Record {
	next := acts.ReopenedRecord(rec, u.reason, u.now().Round(0))
	u.unstamp(&next)
	return next
}

// lookAgain looks for what was begun in the place of the operation while it was reopened, and settles it as
// before if there is something: else both could take effect. It returns the reason then, with the error of the
// settlement, if it failed.
func (u unsettle) lookAgain(was, held *persist.Record) error {
	found, err := u.look(held, nil)
	if err != nil {
		return u.failed(held, err)
	}
	// Asked of the record as it was settled: by the reopened one every act would be refused.
	refused := u.may(was, &found)
	if refused == nil {
		return nil
	}
	// Nothing is sent in between: the record is held.
	err = u.journal.Finish(u.ctx, acts.SettledAgain(was, held, u.now()))
	if err == nil {
		err = u.journal.Flush(u.ctx)
	}
	return errors.Join(refused, err)
}
