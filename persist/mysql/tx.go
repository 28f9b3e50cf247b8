package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// Begin begins a record made by Client.Prepare, inside a transaction of the caller's own, in a journal with the default options, as [Options.Begin] does.
// created is true if the record was begun; else existing is the record that stands under its ID already.
func Begin(ctx context.Context, tx *sql.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	return Options{}.Begin(ctx, tx, rec)
}

// Begin begins a record made by Client.Prepare, inside a transaction of the caller's own. Roll back, and the
// operation never existed; commit, and a client on the journal sends it. The tables must be in Options.Database, or
// in the database used by the transaction.
//
// An existing record with the same ID is returned, with created false, and the transaction goes on. The existing
// record is not changed: it may be another request, ended, abandoned, held, or about to be forgotten by a call of Do.
// So roll back, unless [persist.Record.CheckRepeat] is nil, as after a lost commit. Until the transaction ends,
// nobody can change the existing record, nor renew its lease: end the transaction within seconds. Begin waits for a
// record begun by another open transaction, for Options.LockWait at most. A new record has Seq 0, until the journal
// sees it committed.
//
// After a commit with a lost answer, repeat the whole transaction with the same key. So Begin comes first in it: the
// INSERT of a business row would fail the second time. If the record stands and CheckRepeat is nil, the business row
// stands, too.
//
// Every error matches persist.ErrOutcomeUnknown: an operation may stand under the key. Errors: persist.ErrInvalid,
// persist.ErrSealed for a record in clear in a sealed journal, and persist.ErrTooLarge if the record takes more than
// max_allowed_packet, and then nothing was written, and the transaction goes on; those of the server; ErrVolatile, see
// Options.AllowVolatile. The errors of the server can be found by errors.As as *mysql.MySQLError. After number 1213
// (deadlock) the server has rolled the transaction back, after 1205 (LockWait is over) it has undone the statement
// alone.
func (o Options) Begin(ctx context.Context, tx *sql.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	defer func() { err = sqljournal.Undecided(err) }()
	if o, err = o.checked(); err != nil {
		return persist.Record{}, false, err
	}
	row, err := sqljournal.NewBegun(ctx, &rec)
	if err != nil {
		return persist.Record{}, false, err
	}
	run, err := inPacket(ctx, tx, row)
	if err != nil {
		return persist.Record{}, false, err
	}
	d := o.dialect() // the fact is read with a lock: a plain SELECT would take the snapshot of the transaction
	if err = sqljournal.RefuseClear(ctx, &rec, run, d.SelectFact()+" LOCK IN SHARE MODE"); errors.Is(err, persist.ErrSealed) {
		return persist.Record{}, false, err
	}
	var standing *sqljournal.Row
	if err == nil {
		standing, err = o.insertIn(ctx, run, row)
	}
	if err = sqljournal.ErrClear(d, err); err != nil {
		return persist.Record{}, false, fmt.Errorf("begin in a transaction, journal tables %soncehttp_record: %w", o.prefix(), err)
	}
	return sqljournal.Begun(&rec, row, standing)
}

// insertIn inserts the row, and returns the row that is in the table then: this one, or another with its id, locked by the insert. If the server's settings
// lose commits, it inserts nothing (no row comes back, ErrNoRows), and returns ErrVolatile. The new row has no number yet.
func (o Options) insertIn(ctx context.Context, run sqljournal.QueryRow, row *sqljournal.Row) (*sqljournal.Row, error) {
	d := o.dialect()
	statement := lockWait(o.LockWait) + d.insert(isSealed(row), "NULL", "FROM DUAL WHERE ? OR "+isDurable)
	standing, err := d.put(ctx, run, row.ID, statement, insertValues(row, o.AllowVolatile))
	if errors.Is(err, sql.ErrNoRows) {
		var is settings
		if err := run(ctx, readSettings, nil, is.dest()...); err != nil {
			return nil, err
		}
		is.durable = 0 // they lost commits at the insert, whatever they are now
		return nil, is.check()
	}
	if err == nil && standing == nil {
		err = fmt.Errorf("the used key %q was removed just now; make the transaction again", row.Key)
	}
	return standing, err
}
