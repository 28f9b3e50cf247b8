package seal

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// BeginTx implements [persist.TxBeginner]: it encrypts the record, and begins it in the caller's transaction. An existing record is returned decrypted, with
// created false. If the journal below is no TxBeginner, the error is persist.ErrInvalid.
func (j *journal) BeginTx(ctx context.Context, tx *sql.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	return j.BeginIn(ctx, tx, rec)
}

// BeginIn implements [persist.TxBeginner]: it begins the sealed (encrypted) record in the caller's own transaction, as BeginTx does. Every error matches
// persist.ErrOutcomeUnknown, too.
func (j *journal) BeginIn(ctx context.Context, tx any, rec persist.Record) (existing persist.Record, created bool, err error) {
	existing, created, err = j.begin(ctx, rec, func(sealed persist.Record) (persist.Record, bool, error) {
		return persist.BeginIn(ctx, j.Journal, tx, sealed)
	})
	if err != nil {
		return persist.Record{}, false, fmt.Errorf("%w: %w", persist.ErrOutcomeUnknown, err)
	}
	return existing, created, nil
}

// begin encrypts rec with the first key and begins it in the journal below, by the function below. created is true if it was begun; existing is then rec as
// it is in the journal. Else existing is the record that stands under the ID, decrypted.
// Error: also that of an existing record that cannot be decrypted.
func (j *journal) begin(ctx context.Context, rec persist.Record, below func(sealed persist.Record) (persist.Record, bool, error)) (existing persist.Record, created bool, err error) {
	sealed, err := j.s.Seal(rec)
	if err == nil {
		err = j.hold(ctx) // the journal says from now on that its records are sealed
	}
	if err != nil {
		return persist.Record{}, false, err
	}
	got, created, err := below(sealed)
	switch {
	case err != nil:
		return persist.Record{}, false, err
	case created: // got is encrypted: only what the journal below has set is taken from it
		rec.Seq, rec.Revision, rec.KeepAnswer, rec.KeepKey = got.Seq, got.Revision, got.KeepAnswer, got.KeepKey
		return rec, true, nil
	}
	existing, err = j.unsealOf(ctx, got, rec.ID)
	return existing, false, err
}
