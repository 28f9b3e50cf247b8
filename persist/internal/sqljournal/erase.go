package sqljournal

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/usedkey"
)

// Erase implements [persist.Eraser]: one statement replaces an ended record by its erased form, without the texts that name a person. The row keeps its id,
// a hash of the ID that the record had, without a secret. fingerprint is the one in the row now; rec has another in the erased form. An end that somebody must
// still hear (unreported, owed_from) prevents it. The engine keeps the old row until a vacuum or a purge, and in its log.
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
	was := *row // for the comparison with the row as it is now
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
		if now == nil { // an earlier try has done it (err is nil then), or err says why not
			return err
		}
		if now.Revision == row.Revision && now.SendUntil <= row.SendUntil && bytes.Equal(now.Fingerprint, was.Fingerprint) {
			return fmt.Errorf("%w: the end of %q is owed to somebody", persist.ErrInvalid, row.Key)
		}
		now.State, was.SendUntil = int64(persist.StatePending), row.SendUntil // refuse takes an ended record for stale, and here it is right
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

// checkErased returns an error if an erased record, found by the row ID (a hash) of id, had another ID. A used key (a record without any text) stands under a
// made-up ID until now: it gets the digests of id in its place. A role that may not read the secret gets the record as it is, unchecked. A record that is not
// erased needs no check here.
// Errors: persist.ErrCorrupt, those of knownSecret.
func (j *Journal) checkErased(ctx context.Context, rec *persist.Record, id persist.ID) error {
	if !rec.Erased {
		return nil
	}
	secret, err := j.knownSecret(ctx)
	if err != nil || secret == nil {
		return err
	}
	if rec.ID == usedID(RowID(id)) {
		usedkey.Name(rec, id.Key, secret)
		rec.ID = persist.ErasedID(secret, id)
		return nil
	}
	if rec.IsOf(id, secret) {
		return nil
	}
	return j.failed(fmt.Errorf("%w: account %q, key %q: its row is that of another record, which was erased", persist.ErrCorrupt, id.Account, id.Key))
}

// erasedBy returns the query for the erased records that q selects by their former account and key, and the secret of the journal. The query is nil
// if q does not select by account and key, if there is no secret yet, or if the role may not read it. Nor is there one if q selects no ended records, since
// only these can be erased.
func (j *Journal) erasedBy(ctx context.Context, q *persist.Query) (erased *persist.Query, secret []byte, err error) {
	named := q.Key != "" || !q.AllAccounts && q.Account != ""
	if !named || !selectsEnded(q) {
		return nil, nil, nil
	}
	if secret, err = j.knownSecret(ctx); err != nil || secret == nil {
		return nil, nil, err
	}
	of := q.Erased(secret)
	return &of, secret, nil
}

// knownSecret returns the secret of the journal without making one. It is nil if there is none yet, or if the database role may not read it. Other errors are
// those of Fact.
func (j *Journal) knownSecret(ctx context.Context) ([]byte, error) {
	j.mu.Lock()
	secret := j.secret
	j.mu.Unlock()
	if secret != nil {
		return secret, nil
	}
	secret, err := j.fact(ctx, secretFact, nil, nil)
	if errors.Is(err, persist.ErrDenied) || err == nil && len(secret) == 0 {
		return nil, nil
	}
	return secret, err
}

// selectsEnded reports whether the query may select records that have ended, and whose end every caller has heard. Only such a query can find erased records
// and used keys (records without any text). Unresolved, AnyUnresolved and Owed select records whose end somebody must still hear.
func selectsEnded(q *persist.Query) bool {
	ended := len(q.States) == 0 || slices.ContainsFunc(q.States, persist.State.Final)
	return ended && q.Unresolved == nil && !q.AnyUnresolved && !q.Owed
}
