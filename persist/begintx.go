package persist

import (
	"context"
	"database/sql"
	"fmt"
)

// TxBeginner is a journal in an SQL database: a record is begun inside a transaction of the caller's own. It is
// optional: the journals of persist/postgres and persist/mysql are TxBeginners, others are not. Redis has no
// transactions that the caller commits, and so no such method. A journal sealed by package persist/seal seals the record
// first, over a TxBeginner.
//
// [BeginTx] calls it for any journal.
type TxBeginner interface {
	// BeginTx begins a record made by Client.Prepare. Roll back, and the operation never existed; commit, and a client on
	// the journal sends it. The tables must be in the database of the transaction. An existing record is returned as by
	// Journal.Begin, and is not changed. Each error matches ErrOutcomeUnknown: an operation may stand under the key.
	BeginTx(ctx context.Context, tx *sql.Tx, rec Record) (existing Record, created bool, err error)
	// BeginIn is BeginTx in a transaction of a kind that the journal knows: a *sql.Tx, or a pgx.Tx in persist/postgres.
	// Any other kind is ErrInvalid.
	BeginIn(ctx context.Context, tx any, rec Record) (existing Record, created bool, err error)
}

// BeginTx begins a record made by Client.Prepare inside a transaction of the caller's own, through a journal: encrypted, if the journal is sealed. After a
// commit of tx a client sends the operation; after a rollback it never existed. created is true if the record was begun, and existing is this record then.
// Else existing is the record that stands under its ID already, unchanged: [Record.CheckRepeat] says if tx may be committed.
//
// A journal that is no [TxBeginner], such as one on Redis or in a file, is ErrInvalid, and nothing was begun: use Client.Enqueue there. For a pgx.Tx there
// is BeginPgx of persist/postgres.
func BeginTx(ctx context.Context, j Journal, tx *sql.Tx, rec Record) (existing Record, created bool, err error) {
	return BeginIn(ctx, j, tx, rec)
}

// BeginIn is [BeginTx] for a transaction of any kind that the journal knows: a *sql.Tx, or a pgx.Tx in persist/postgres. created is true if the record was
// begun, and existing is this record then; else existing is the record that stands under its ID already. A journal that is no [TxBeginner] begins nothing,
// and an error is returned.
func BeginIn(ctx context.Context, j Journal, tx any, rec Record) (existing Record, created bool, err error) {
	below, can := As[TxBeginner](j)
	if !can {
		return Record{}, false, fmt.Errorf("%w: %w: a journal of type %T begins nothing in a transaction of the caller's own; use persist/postgres or persist/mysql, or Client.Enqueue", ErrOutcomeUnknown, ErrInvalid, j)
	}
	return below.BeginIn(ctx, tx, rec)
}
