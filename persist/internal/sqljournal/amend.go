package sqljournal

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// Amend implements [persist.Journal]: it replaces a record that has ended, by one statement with the conditions that it is at its revision and has
// no later SendUntil than rec (the time until which a send may be on its way). If no row fits them, it reads the row, and adopts the later SendUntil for
// another try, or returns why it does not fit. j.settle repeats the write until its result is known.
func (j *Journal) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if j == nil {
		return persist.Record{}, errNotOpened
	}
	if err := ctx.Err(); err != nil {
		return persist.Record{}, err
	}
	if err := rec.ReadyToAmend(); err != nil {
		return persist.Record{}, err
	}
	row := newChange(&rec)
	if err := row.Fits(j.d.Most()); err != nil {
		return persist.Record{}, j.failed(err)
	}
	err := j.settle(ctx, nil, func(ctx context.Context, conn *sql.Conn, _ bool) error {
		where, args := row.ended()
		statement := j.d.Rebind(j.d.Update(row.sets(), where+" AND created = ? AND fingerprint = ? AND send_until <= ?"))
		args = append(append(row.changed(), args...), row.Created, row.Fingerprint, row.SendUntil)
		n, err := exec(ctx, conn, statement, args)
		if err != nil || n > 0 {
			return err
		}
		now, err := j.missedEnd(ctx, conn, row)
		if now == nil { // an earlier try has done it (err is nil then), or err says why not
			return err
		}
		now.State = int64(persist.StatePending) // refuse takes an ended record for stale, and here it is right
		return now.refuse(row)
	})
	if err != nil {
		return persist.Record{}, err
	}
	if row.SendUntil > nanoseconds(rec.SendUntil) {
		rec.SendUntil = instant(row.SendUntil)
	}
	rec.Revision++
	return rec, nil
}

// missedEnd returns the row of a final record that a change has found in another state than expected. If it is the result of an earlier try of the same call
// (the next revision, with this call's token), now is nil and err is that of confirming it (that it is durable); now is nil after an error, too.
func (j *Journal) missedEnd(ctx context.Context, conn *sql.Conn, row *Row) (now *Row, err error) {
	stands, err := j.stands(ctx, conn, row)
	if err != nil {
		return nil, err
	}
	now = &stands
	if now.Revision == row.Revision+1 && bytes.Equal(now.Token, row.Token) {
		return nil, j.confirm(ctx, conn)
	}
	if state := persist.State(now.State); !state.Final() {
		return nil, fmt.Errorf("%w: %q is %v at revision %d", persist.ErrStale, row.Key, state, now.Revision)
	}
	return now, nil
}

// ended returns a condition of SQL, with its parameters, that is true if the row's record is final and still as the caller read it. The states from 2 on are
// the final ones. The number (seq) is compared if it is known, since a record that was forgotten and begun anew has another one.
func (r *Row) ended() (where string, args []any) {
	where, args = "id = ? AND revision = ? AND state >= 2", []any{r.ID, r.Revision}
	if r.Seq.Valid {
		where, args = where+" AND seq = ?", append(args, r.Seq.Int64)
	}
	return where, args
}
