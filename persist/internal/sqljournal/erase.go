package sqljournal

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
)

// Erase implements [persist.Eraser]. It is one statement. The row keeps its id, which is a hash of the ID that the record had, without a secret. The engine keeps the old row until a vacuum or a purge, and in its log.
func (j *Journal) Erase(ctx context.Context, rec persist.Record, fingerprint []byte) (persist.Record, error) {
	if j == nil {
		return persist.Record{}, errNotOpened
	}
	if err := ctx.Err(); err != nil {
		return persist.Record{}, err
	}
	if err := rec.ReadyToErase(); err != nil {
		return persist.Record{}, err
	}
	secret, err := j.Secret(ctx)
	if err != nil {
		return persist.Record{}, err
	}
	had := RowID(rec.ID)
	rec.ID = persist.ErasedID(secret, rec.ID)
	row := NewRow(&rec)
	row.ID = had // it finds the row by the ID that the record had
	if err := row.Fits(j.d.Most()); err != nil {
		return persist.Record{}, j.failed(err)
	}
	was := *row
	was.Fingerprint = bytes.Clone(fingerprint)
	err = j.settle(ctx, nil, func(ctx context.Context, conn *sql.Conn, _ bool) error {
		where, args := row.ended()
		where += " AND created = ? AND fingerprint = ? AND send_until <= ? AND unreported = 0 AND owed_from = 0"
		statement := j.d.Rebind(j.d.Update(row.sets()+", fingerprint = ?, account = ?, op_key = ?", where))
		args = append(append(append(row.changed(), row.Fingerprint, row.Account, row.Key), args...), row.Created, was.Fingerprint, row.SendUntil)
		n, err := exec(ctx, conn, statement, args)
		if err != nil || n > 0 {
			return err
		}
		now, err := j.missedEnd(ctx, conn, row)
		if now == nil {
			return err
		}
		if now.Revision == row.Revision && now.SendUntil <= row.SendUntil && bytes.Equal(now.Fingerprint, was.Fingerprint) {
			return fmt.Errorf("%w: the end of %q is owed to somebody", persist.ErrInvalid, row.Key)
		}
		now.State, was.SendUntil = int64(persist.StatePending), row.SendUntil // it has ended, as it should
		err = now.refuse(&was)
		row.SendUntil = was.SendUntil
		return err
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

// checkErased returns an error if an erased record, found by the row ID of an ID, had another one.
// Errors: persist.ErrCorrupt, those of Secret.
func (j *Journal) checkErased(ctx context.Context, rec *persist.Record, id persist.ID) error {
	if !rec.Erased {
		return nil
	}
	secret, err := j.Secret(ctx)
	if err != nil {
		return err
	}
	if rec.IsOf(id, secret) {
		return nil
	}
	return j.failed(fmt.Errorf("%w: account %q, key %q: its row is that of another record, which was erased", persist.ErrCorrupt, id.Account, id.Key))
}

// erasedBy returns the query for the erased records that q selects by the account and the key that they had; nil if q selects none by these. So it is, too,
// if the role has no right on the secret of the journal, or there is no secret yet.
func (j *Journal) erasedBy(ctx context.Context, q *persist.Query) (*persist.Query, error) {
	named := q.Key != "" || !q.AllAccounts && q.Account != ""
	ended := len(q.States) == 0 || slices.ContainsFunc(q.States, persist.State.Final)
	if !named || !ended || q.Unresolved != nil || q.AnyUnresolved || q.Owed {
		return nil, nil
	}
	j.mu.Lock()
	secret := j.secret
	j.mu.Unlock()
	if secret == nil {
		var err error
		if secret, err = j.fact(ctx, secretFact, nil, nil); errors.Is(err, persist.ErrDenied) || err == nil && len(secret) == 0 {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	erased := q.Erased(secret)
	return &erased, nil
}
