package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// Begin begins a record made by Client.Prepare, inside a transaction of the caller's own, in a journal with the default options, as [Options.Begin] does.
// created is true if the record was begun; else existing is the record that stands under its ID already.
func Begin(ctx context.Context, tx pgx.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	return Options{}.Begin(ctx, tx, rec)
}

// BeginSQL begins a record made by Client.Prepare, like [Begin], inside the caller's transaction of database/sql over pgx. created is true if the record was
// begun; else existing is the record that stands under its ID already.
func BeginSQL(ctx context.Context, tx *sql.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	return Options{}.BeginSQL(ctx, tx, rec)
}

// Begin begins a record made by Client.Prepare, inside a transaction of the caller's own. Roll back, and the
// operation never existed; commit, and a client on the journal sends it. The tables must be in the database of the
// transaction.
//
// An existing record with the same ID is returned, with created false, and the transaction goes on. The existing
// record is not changed: it may be another request, ended, abandoned, held, or about to be forgotten by a call of Do.
// So roll back, unless [persist.Record.CheckRepeat] is nil, as after a lost commit. Until the transaction ends, the
// existing record is not removed, but others may change it. Begin waits for a record begun by another open
// transaction, for Options.LockWait at most. A new record has Seq 0, until the journal sees it committed.
//
// After a commit with a lost answer, repeat the whole transaction with the same key. So Begin comes first in it: the
// INSERT of a business row would fail the second time. If the record stands and CheckRepeat is nil, the business row
// stands, too.
//
// Every error matches persist.ErrOutcomeUnknown: an operation may stand under the key. Errors: persist.ErrInvalid,
// and persist.ErrSealed for a record in clear in a sealed journal, and then nothing was written and the
// transaction goes on; those of the server; ErrVolatile, see Options.AllowVolatile. The errors of the server can be
// found by errors.As as *pgconn.PgError, SQLSTATE 40001 (serialization failure) and 55P03 (LockWait is over) among
// them. After such an error the transaction can only be rolled back.
func (o Options) Begin(ctx context.Context, tx pgx.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	return o.beginIn(ctx, rec, onPgx(tx), "")
}

// onPgx returns the function that runs a query in a transaction of pgx.
func onPgx(tx pgx.Tx) sqljournal.QueryRow {
	return func(ctx context.Context, query string, args []any, dest ...any) error {
		return tx.QueryRow(ctx, query, args...).Scan(dest...)
	}
}

// BeginSQL begins a record made by Client.Prepare, like [Options.Begin], inside the caller's transaction of database/sql over pgx. created is true if the
// record was begun; else existing is the record that stands under its ID already.
func (o Options) BeginSQL(ctx context.Context, tx *sql.Tx, rec persist.Record) (existing persist.Record, created bool, err error) {
	return o.beginIn(ctx, rec, sqljournal.OnTx(tx), "")
}

// beginTries bounds the tries when a met record is removed in the meantime.
const beginTries = 3

// beginIn begins an operation in the caller's own transaction; run runs a query in it. A journal that takes encrypted records only refuses it. Every
// error matches persist.ErrOutcomeUnknown: the key may already have an operation. In a database other than that of where, it begins nothing, with
// sqljournal.ErrElsewhere; an empty where is any. RefuseClear returns ErrSealed before anything is written; after another error of it the transaction is
// broken, and ErrClear only classifies that.
func (o Options) beginIn(ctx context.Context, rec persist.Record, run sqljournal.QueryRow, where string) (existing persist.Record, created bool, err error) {
	defer func() { err = sqljournal.Undecided(err) }()
	if o, err = o.checked(); err != nil {
		return persist.Record{}, false, err
	}
	row, err := sqljournal.NewBegun(ctx, &rec)
	if err != nil {
		return persist.Record{}, false, err
	}
	if err := row.Fits((*dialect)(nil).Most()); err != nil { // the bound is the same for every dialect
		return persist.Record{}, false, err
	}
	d := o.dialect()
	if err = sqljournal.RefuseClear(ctx, &rec, run, d.Rebind(d.SelectFact())); errors.Is(err, persist.ErrSealed) {
		return persist.Record{}, false, err
	}
	var standing *sqljournal.Row
	if err == nil {
		standing, err = o.insertIn(ctx, run, row, where)
	}
	if err = sqljournal.ErrClear(d, err); err != nil {
		return persist.Record{}, false, fmt.Errorf("begin in a transaction, journal schema %s: %w", o.Schema, err)
	}
	return sqljournal.Begun(&rec, row, standing)
}

// insertIn inserts the row, and returns the row that is in the table then: this one, or another with its id. The other is read with a lock: so it is seen
// even if it is not in the transaction's snapshot, and it can not be removed. In a database other than that of where, it neither inserts nor reads; an empty
// where is any. If the other row was removed between the insert and the read, it tries again, beginTries times at most. If the transaction's settings lose
// commits, it inserts nothing and returns ErrVolatile, unless that is allowed.
func (o Options) insertIn(ctx context.Context, run sqljournal.QueryRow, row *sqljournal.Row, where string) (*sqljournal.Row, error) {
	d := o.dialect()
	read := fmt.Sprintf("SELECT %s FROM %s s WHERE s.id = $1 FOR KEY SHARE", strings.Join(sqljournal.ReadColumns("s."), ", "), d.table)
	for range beginTries {
		var fsync, sync, here, was string
		var revision sql.NullInt64
		values := append(insertValues(row), o.AllowVolatile)
		if where != "" {
			values = append(values, where)
		}
		if err := run(ctx, o.beginStatement(d, where != ""), values, &revision, &fsync, &sync, &here, &was); err != nil {
			return nil, err
		}
		if here != where {
			return nil, sqljournal.ErrElsewhere
		}
		if err := durable(fsync, sync); err != nil && !o.AllowVolatile {
			return nil, err
		}
		if revision.Valid {
			return row, nil
		}
		var existing sqljournal.Row
		err := run(ctx, read, []any{row.ID}, existing.Fields()...)
		if !errors.Is(err, sql.ErrNoRows) {
			return &existing, err
		}
	}
	return nil, errors.New("the record is begun and removed by others all the time")
}

// beginStatement inserts the row unless the settings of the transaction lose commits or, with placed, its database is another one than the last
// parameter says. It bounds the wait for another transaction, and puts the bound of the caller back. The last set_config is evaluated after the end of
// the insert, since its row is joined to the insert's.
func (o Options) beginStatement(d *dialect, placed bool) string {
	here, allowed := "''", fmt.Sprintf("($%d::boolean OR fsync <> 'off' AND sync <> 'off')", len(sqljournal.Columns()))
	if placed {
		here = d.here()
		allowed += fmt.Sprintf(" AND here = $%d::text", len(sqljournal.Columns())+1)
	}
	before := "before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS was, current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS sync, " + here + " AS here)"
	bound := fmt.Sprintf("bound AS MATERIALIZED (SELECT was, fsync, sync, here, set_config('lock_timeout', '%d', true) FROM before)", o.LockWait.Milliseconds())
	return fmt.Sprintf("WITH %s, %s, mine AS (%s, revision) SELECT mine.revision, bound.fsync, bound.sync, bound.here, set_config('lock_timeout', bound.was, true) FROM bound LEFT JOIN mine ON true",
		before, bound, insert(d.table, "NULL", "bound WHERE "+allowed))
}
