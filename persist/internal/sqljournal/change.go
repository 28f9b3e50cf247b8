package sqljournal

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// changeable lists the columns set by an Update or a Finish, in the order of changed.
const changeable = "revision = revision + 1, token = ?, state = ?, unreported = ?, swept = ?, next_attempt = ?, " +
	"finished = ?, sweep_at = ?, lease_owner = ?, lease_until = ?, send_until = ?, owed_from = ?, progress = ?, answer = ?, needs = COALESCE(?, needs), hold_reason = ?"

// sets returns the SET clause of an UPDATE for the row; its parameters are those of changed. A row with a new intent replaces the stored one, and the
// stored request's body goes (Record.RequestDropped).
func (r *Row) sets() string {
	if r.Intent != nil {
		return changeable + ", intent = ?, body = NULL"
	}
	return changeable
}

// changed returns the parameters for sets, as pointers to the fields of the row. Drivers take them as values.
func (r *Row) changed() []any {
	if r.Intent != nil {
		return append(r.always(), &r.Intent)
	}
	return r.always()
}

// always returns pointers to the fields of the row that every change writes, in the order of the columns in changeable. Beside them a change may write the
// intent, the part frozen by Begin; it rarely changes, so it is not among these.
func (r *Row) always() []any {
	return []any{&r.Token, &r.State, &r.Unreported, &r.Swept, &r.NextAttempt, &r.Finished, &r.SweepAt, &r.LeaseOwner, &r.LeaseUntil, &r.SendUntil, &r.OwedFrom, &r.Progress, &r.Answer, &r.Needs, &r.HoldReason}
}

// current returns a condition, with its parameters, for the record of the row if it is unfinished and still as the caller read it. A record that had
// no number (seq) when it was read may have one by now. The number is compared, since a record that was forgotten and begun anew has another one, and may have
// the same revision. The states below 2 are pending and held.
func (r *Row) current() (where string, args []any) {
	where, args = "id = ? AND revision = ? AND state < 2", []any{r.ID, r.Revision}
	if r.Seq.Valid {
		where, args = where+" AND seq = ?", append(args, r.Seq.Int64)
	}
	return where, args
}

// Update implements [persist.Journal]: it replaces an unfinished record at its revision. It is durable on return.
func (j *Journal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := j.change(ctx, &rec, false, false); err != nil {
		return persist.Record{}, err
	}
	rec.Revision++
	return rec, nil
}

// Finish implements [persist.Journal]: it replaces an unfinished record at its revision by rec, which is final. It is durable on return.
func (j *Journal) Finish(ctx context.Context, rec persist.Record) error {
	return j.change(ctx, &rec, true, false)
}

// FinishLate implements [persist.LateFinisher]: it is Finish for an end that no caller waits for. It may wait a little to share a commit with others, and
// without a connection it tries again.
func (j *Journal) FinishLate(ctx context.Context, rec persist.Record) error {
	return j.change(ctx, &rec, true, true)
}

// change replaces the progress, the changeable part, of the unfinished record with rec's ID and revision. If final is set, rec is an end of it. It keeps the
// later one of rec.SendUntil and the stored one, and sets rec.SendUntil to it. late means that no caller waits for the write: it may begin a little later,
// to share a commit, and is tried again if there is no connection. The first try shares a statement with other calls, where the engine can do that. After an
// end, no statement that begins this record can still arrive, so landing, the list of these statements, forgets it.
func (j *Journal) change(ctx context.Context, rec *persist.Record, final, late bool) error {
	if j == nil {
		return errNotOpened
	}
	if err := ready(ctx, rec, final); err != nil {
		return err
	}
	row, settle := newChange(rec), j.settle
	if late {
		settle = j.settleLate
	}
	if err := row.Fits(j.d.Most()); err != nil {
		return j.failed(err)
	}
	err := settle(ctx, j.writes.first(sharer{row: row, late: late}), func(ctx context.Context, conn *sql.Conn, _ bool) error {
		where, args := row.current()
		statement := j.d.Rebind(j.d.Update(row.sets(), where+" AND created = ? AND fingerprint = ? AND send_until <= ?"))
		args = append(append(row.changed(), args...), row.Created, row.Fingerprint, row.SendUntil)
		n, err := exec(ctx, conn, statement, args)
		if err != nil || n > 0 {
			return err
		}
		now, err := j.stands(ctx, conn, row)
		if err != nil {
			return err
		}
		if now.Revision == row.Revision+1 && bytes.Equal(now.Token, row.Token) {
			return j.confirm(ctx, conn) // an earlier try of this call has landed
		}
		return now.refuse(row)
	})
	if row.SendUntil > nanoseconds(rec.SendUntil) {
		rec.SendUntil = instant(row.SendUntil)
	}
	if final && err == nil {
		j.landing.End(string(row.ID))
	}
	return err
}

// stands reads the present row of a record that an update or delete has not changed, to find out why; now has only the values needed for that. Such a write
// has waited for every transaction in doubt, so a SELECT is enough to see their results; see confirm.
// Errors: persist.ErrNotFound if there is no row, or the query's.
func (j *Journal) stands(ctx context.Context, conn *sql.Conn, row *Row) (now Row, err error) {
	query, args := j.everywhere("SELECT seq, COALESCE(revision, 0), token, state, COALESCE(created, 0), COALESCE(send_until, 0), fingerprint FROM %s WHERE id = ?", row.ID)
	err = conn.QueryRowContext(ctx, query, args...).Scan(&now.Seq, &now.Revision, &now.Token, &now.State, &now.Created, &now.SendUntil, &now.Fingerprint)
	if errors.Is(err, sql.ErrNoRows) {
		return now, fmt.Errorf("%w: account %q, key %q", persist.ErrNotFound, row.Account, row.Key)
	}
	return now, err
}

// confirm returns once the data read on the connection is as safe as a write of its own. The database may have
// committed an earlier try of a call, and show it to everybody, although its wait for a standby was ended. The standby does not have it then. So this call
// makes a commit of its own and waits for it. Engines that cannot be in this state have no statement for it ("").
func (j *Journal) confirm(ctx context.Context, conn *sql.Conn) error {
	statement := j.d.Confirm()
	if statement == "" {
		return nil
	}
	_, err := conn.ExecContext(ctx, statement)
	return err
}

// refuse returns the error for a change that the present row (now) has not taken. persist.ErrStale: the record has ended or changed, or is another one under
// the same ID. persist.ErrInvalid: the change has another time of creation or fingerprint, which never change. errAgain: the row is as the caller read it. Then
// the new SendUntil was too early, or the row has changed between the write and this look; row gets the later SendUntil, and the caller tries again.
func (now *Row) refuse(row *Row) error {
	state := persist.State(now.State)
	sameSeq := !row.Seq.Valid || now.Seq == row.Seq
	switch {
	case !sameSeq || now.Revision != row.Revision || state.Final():
		return fmt.Errorf("%w: %q is %v at revision %d", persist.ErrStale, row.Key, state, now.Revision)
	case now.Created != row.Created || !bytes.Equal(now.Fingerprint, row.Fingerprint):
		return fmt.Errorf("%w: %q would change its identity", persist.ErrInvalid, row.Key)
	}
	row.SendUntil = max(row.SendUntil, now.SendUntil)
	return errAgain
}

// Forget implements [persist.Journal]: it deletes an unfinished record at its revision. It refuses (landing.May) while a statement that begins this record may
// still reach the server, since that would begin it once more. repeated means that an earlier try of this write may have taken effect.
func (j *Journal) Forget(ctx context.Context, rec persist.Record) error {
	if j == nil {
		return errNotOpened
	}
	if j.landing.May(string(RowID(rec.ID)), rec.Seq) {
		return j.failed(fmt.Errorf("%w: a statement that began the record may still be on its way", persist.ErrUncertain))
	}
	row := &Row{
		ID: RowID(rec.ID), Seq: sql.NullInt64{Int64: int64(rec.Seq), Valid: rec.Seq != 0}, Revision: int64(rec.Revision),
		Account: []byte(rec.Account), Key: []byte(rec.Key),
	}
	where, args := row.current()
	statement := j.d.Rebind(j.d.Delete(where))
	return j.settle(ctx, nil, func(ctx context.Context, conn *sql.Conn, repeated bool) error {
		n, err := exec(ctx, conn, statement, args)
		if err != nil || n > 0 {
			return err
		}
		now, err := j.stands(ctx, conn, row)
		gone := errors.Is(err, persist.ErrNotFound) || err == nil && row.Seq.Valid && now.Seq != row.Seq
		switch {
		case repeated && gone:
			return j.confirm(ctx, conn) // an earlier try of this call has landed
		case err != nil:
			return err
		}
		row.Created, row.Fingerprint = now.Created, now.Fingerprint // a Forget does not compare these: refuse must not find them different
		return now.refuse(row)
	})
}

// MarkReported implements [persist.Journal]: it clears Unreported (no caller has heard the end yet) of an ended record. If a sweep has taken its answer
// already (swept = 1), it was only kept because it was unreported, and is due for the next sweep now. A record that is not unreported stays as it is, and that
// is no error. It is durable on return. repeated means that an earlier try of this write may have taken effect.
func (j *Journal) MarkReported(ctx context.Context, id persist.ID) error {
	if j == nil {
		return errNotOpened
	}
	statement := j.d.Rebind(j.d.Update("unreported = 0, sweep_at = CASE WHEN swept = 1 THEN finished ELSE sweep_at END, revision = revision + 1", "id = ? AND unreported = 1"))
	return j.settle(ctx, nil, func(ctx context.Context, conn *sql.Conn, repeated bool) error {
		n, err := exec(ctx, conn, statement, []any{RowID(id)})
		if err == nil && n == 0 && repeated {
			err = j.confirm(ctx, conn) // an earlier try of this call may have landed
		}
		return err
	})
}

// exec runs a statement, and returns the number of rows that it has changed.
func exec(ctx context.Context, conn *sql.Conn, statement string, args []any) (int64, error) {
	res, err := conn.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
