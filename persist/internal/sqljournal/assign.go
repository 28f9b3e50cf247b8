package sqljournal

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// assigned lists the columns set by Assign, in the order of its arguments.
const assigned = "id = ?, account = ?, revision = revision + 1, token = ?, intent = ?, progress = ?, body = ?, answer = ?, needs = ?"

// Assign implements [persist.Journal]: the record gets another account, and so its row another primary key, in one statement. The row of the old account must
// still be as rec says, and no row may have the new key. repeated means that an earlier try of this write may have taken effect: then a row with its token is
// its own work.
func (j *Journal) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	if j == nil {
		return persist.Record{}, errNotOpened
	}
	if err := rec.Validate(); err != nil {
		return persist.Record{}, err
	}
	next := rec.Clone()
	next.Account = account
	before, row := newChange(&rec), NewRow(&next)
	if err := row.Fits(j.d.Most()); err != nil {
		return persist.Record{}, j.failed(err)
	}
	err := j.settle(ctx, nil, func(ctx context.Context, conn *sql.Conn, repeated bool) error {
		there, err := j.stands(ctx, conn, row)
		switch {
		case errors.Is(err, persist.ErrNotFound):
		case err != nil:
			return err
		case repeated && bytes.Equal(there.Token, row.Token):
			return j.confirm(ctx, conn) // an earlier try of this call has landed
		default:
			return fmt.Errorf("%w: account %q, key %q", persist.ErrExists, account, rec.Key)
		}
		where, args := "id = ? AND revision = ? AND created = ? AND fingerprint = ?", []any{before.ID, before.Revision, before.Created, before.Fingerprint}
		if before.Seq.Valid {
			where, args = where+" AND seq = ?", append(args, before.Seq.Int64)
		}
		set := []any{row.ID, row.Account, row.Token, row.Intent, row.Progress, row.Body, row.Answer, row.Needs}
		n, err := j.execUnused(ctx, conn, row, j.d.Rebind(j.d.Update(assigned, where)), append(set, args...))
		if err != nil || n > 0 {
			return err
		}
		now, err := j.stands(ctx, conn, before)
		if err != nil {
			return err
		}
		now.State = int64(persist.StatePending) // refuse takes an ended record for stale, and here it may have ended
		return now.refuse(before)
	})
	if err != nil {
		return persist.Record{}, err
	}
	next.Revision++
	return next, nil
}
