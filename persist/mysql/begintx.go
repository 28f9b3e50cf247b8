package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// BeginTx implements [persist.TxBeginner]: it begins the record in the caller's own transaction, as [Options.Begin] does, with the options and the database
// of the journal. It takes no connection of the journal's. The transaction must be one of the journal's server: on another one nothing is begun, with
// persist.ErrInvalid, once the journal has read its secret, as each begin of a client does. A role without the right to read facts, and a copy of the
// tables, are not told apart: such a role cannot compare the secrets, and a copy has the same one. Errors: also persist.ErrClosed and persist.ErrReadOnly.
func (j *Journal) BeginTx(ctx context.Context, tx *sql.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	if err := j.Begins(ctx); err != nil {
		return persist.Record{}, false, err
	}
	// With a lock: a plain SELECT would take the snapshot of the transaction.
	if err := sqljournal.SameSecret(ctx, j.Journal, sqljournal.OnTx(tx), " LOCK IN SHARE MODE"); err != nil {
		return persist.Record{}, false, sqljournal.Undecided(fmt.Errorf("begin in a transaction, journal tables %soncehttp_record: %w", j.opts.prefix(), err))
	}
	return j.opts.Begin(ctx, tx, rec)
}

// BeginIn implements [persist.TxBeginner]: it begins an operation in the caller's own transaction. tx is a *sql.Tx.
func (j *Journal) BeginIn(ctx context.Context, tx any, rec persist.Record) (existing persist.Record, created bool, err error) {
	if own, is := tx.(*sql.Tx); is {
		return j.BeginTx(ctx, own, rec)
	}
	return persist.Record{}, false, sqljournal.Undecided(fmt.Errorf("%w: a transaction of type %T; want a *sql.Tx", persist.ErrInvalid, tx))
}
