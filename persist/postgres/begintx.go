package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// BeginPgx begins a record made by Client.Prepare inside a transaction of the caller's own, through a journal: encrypted, if the journal was returned by
// Sealer.Journal of package persist/seal. created is true if the record was begun; else existing is the record that stands under its ID already.
// persist.BeginTx does the same for a *sql.Tx.
func BeginPgx(ctx context.Context, j persist.Journal, tx pgx.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	return persist.BeginIn(ctx, j, tx, rec)
}

// BeginTx implements [persist.TxBeginner]: it begins the record in the caller's own transaction, as [Options.BeginSQL] does, with the options of the
// journal. It takes no connection of the journal's. The transaction must be one of the journal's database: in another one nothing is begun, with
// persist.ErrInvalid. A physical copy of the whole server has the same identifiers, and cannot be told apart. Errors: also persist.ErrClosed and
// persist.ErrReadOnly.
func (j *Journal) BeginTx(ctx context.Context, tx *sql.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	return j.beginIn(ctx, rec, sqljournal.OnTx(tx))
}

// BeginPgx begins an operation in the caller's own transaction, as BeginTx does, for a transaction of pgx.
func (j *Journal) BeginPgx(ctx context.Context, tx pgx.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	return j.beginIn(ctx, rec, onPgx(tx))
}

// BeginIn implements [persist.TxBeginner]: it begins an operation in the caller's own transaction. tx is a *sql.Tx or a pgx.Tx.
func (j *Journal) BeginIn(ctx context.Context, tx any, rec persist.Record) (existing persist.Record, created bool, err error) {
	switch tx := tx.(type) {
	case *sql.Tx:
		return j.BeginTx(ctx, tx, rec)
	case pgx.Tx:
		return j.BeginPgx(ctx, tx, rec)
	}
	return persist.Record{}, false, sqljournal.Undecided(fmt.Errorf("%w: a transaction of type %T; want a *sql.Tx or a pgx.Tx", persist.ErrInvalid, tx))
}
