package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/oncehttp/oncehttp/persist"
)

// guard keeps the transaction of a write from being lost, whatever the settings of its session are. It sets
// synchronous_commit until the end of the transaction if it is off. If fsync is off, guard fails, and the transaction
// with it. The error has fsyncOff in its text. A session behind a pooler, or of a pool of the program's own, may have
// other settings with each transaction.
const guard = `SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true),
	CASE current_setting('fsync') WHEN 'off' THEN ('` + fsyncOff + `' || current_setting('fsync'))::integer END`

// fsyncOff is in the text of guard's error. That error has the code invalidText.
const fsyncOff = "oncehttp: fsync is "

// The SQLSTATE codes of refused writes.
const (
	invalidText         = "22P02"
	readOnlyTransaction = "25006"
)

// told converts the error of a write into one of this package: ErrVolatile if the guard, a statement before each write, found that the server would lose
// commits (then it fails to convert a text, fsyncOff, into a number); persist.ErrReadOnly if the connection or the server takes no writes. Any other error, nil
// included, stays as it is.
func told(err error) error {
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg):
	case pg.Code == invalidText && strings.Contains(pg.Message, fsyncOff):
		return fmt.Errorf("%w: fsync is off; switch it on, or set AllowVolatile: %w", ErrVolatile, err)
	case pg.Code == readOnlyTransaction:
		return fmt.Errorf("%w: the connection is read-only: default_transaction_read_only is on, or the server is a standby: %w", persist.ErrReadOnly, err)
	}
	return err
}

// conn is a connection of the driver. If guards is set, guard is in the transaction of each write, sent with it.
type conn struct {
	*stdlib.Conn
	guards bool
}

// connOf returns the connection of pgx below a connection of database/sql. driverConn must be a *conn.
func connOf(driverConn any) *pgx.Conn { return driverConn.(*conn).Conn.Conn() }

// alone reports whether a statement is a write in a transaction of its own, so that the guard (a check that the server keeps commits) goes before it.
// A notification needs none: its loss costs no more than a wait. The status 'I' means that no transaction is open. A SELECT with the text confirm counts as a
// write.
func (c *conn) alone(query string) bool {
	reads := strings.HasPrefix(query, "SELECT ") && !strings.Contains(query, confirm)
	return c.guards && !reads && !strings.HasPrefix(query, "NOTIFY ") && c.Conn.Conn().PgConn().TxStatus() == 'I'
}

// ExecContext implements [driver.ExecerContext]. A write that is no part of a transaction is sent together with the guard, a statement that fails if
// the server would lose commits in a crash.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !c.alone(query) {
		result, err := c.Conn.ExecContext(ctx, query, args)
		return result, told(err)
	}
	_, tag, err := c.guarded(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}

// QueryContext implements [driver.QueryerContext]. A write that is no part of a transaction is sent together with the guard (see ExecContext). Its
// rows are read before it returns, since its transaction is committed then.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !c.alone(query) {
		rows, err := c.Conn.QueryContext(ctx, query, args)
		return rows, told(err)
	}
	rows, _, err := c.guarded(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// guarded sends the guard and a statement at once, in one transaction, and returns after its end, with the rows of the statement and its tag (such as the
// number of changed rows). The guard fails if the server would lose commits in a crash; the statement has no effect then.
func (c *conn) guarded(ctx context.Context, query string, args []driver.NamedValue) (rows *rows, tag pgconn.CommandTag, err error) {
	on := c.Conn.Conn()
	if on.IsClosed() {
		return nil, tag, driver.ErrBadConn
	}
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
	}
	var batch pgx.Batch
	batch.Queue(guard)
	batch.Queue(query, values...)
	results := on.SendBatch(ctx, &batch)
	rows, tag, err = readGuarded(results)
	if closed := results.Close(); err == nil { // the answer to the commit
		err = closed
	}
	if err != nil && pgconn.SafeToRetry(err) {
		err = driver.ErrBadConn // nothing was sent: the statement may be made on another connection
	}
	return rows, tag, told(err)
}

// readGuarded reads the results of two statements sent together: the guard (a check that the server keeps commits), then the statement after it. It returns
// the rows of the second one and its tag (such as the number of changed rows), or the first error.
func readGuarded(results pgx.BatchResults) (*rows, pgconn.CommandTag, error) {
	if _, err := results.Exec(); err != nil {
		return nil, pgconn.CommandTag{}, err
	}
	answer, err := results.Query()
	if err != nil {
		return nil, pgconn.CommandTag{}, err
	}
	defer answer.Close()
	var read rows
	for _, column := range answer.FieldDescriptions() {
		read.columns = append(read.columns, column.Name)
	}
	for answer.Next() {
		values, err := answer.Values()
		if err != nil {
			return nil, pgconn.CommandTag{}, err
		}
		read.left = append(read.left, values)
	}
	answer.Close()
	return &read, answer.CommandTag(), answer.Err()
}

// rows are the rows of a guarded query.
type rows struct {
	columns []string
	left    [][]any
}

// Columns implements [driver.Rows]. It returns their names.
func (r *rows) Columns() []string { return r.columns }

// Close implements [driver.Rows]. All rows are in memory: there is nothing to close.
func (r *rows) Close() error { return nil }

// Next implements [driver.Rows]. All rows were read before.
func (r *rows) Next(dest []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	for i, value := range r.left[0] {
		dest[i] = value
	}
	r.left = r.left[1:]
	return nil
}

// BeginTx implements [driver.ConnBeginTx]. A transaction that may write begins with the guard, which fails if the server would lose commits in a
// crash. This package's own transactions are READ COMMITTED, so others get no guard.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if !c.guards || sql.IsolationLevel(opts.Isolation) != sql.LevelReadCommitted || opts.ReadOnly {
		return c.Conn.BeginTx(ctx, opts)
	}
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	begun, err := c.Conn.Conn().BeginTx(ctx, pgx.TxOptions{BeginQuery: "begin isolation level read committed; " + guard})
	if err != nil {
		return nil, told(err)
	}
	return tx{ctx, begun}, nil
}

// tx is a guarded transaction.
type tx struct {
	ctx   context.Context // of its beginning, as with the driver's own
	begun pgx.Tx
}

// Commit implements [driver.Tx]. It uses the context of BeginTx.
func (t tx) Commit() error { return t.begun.Commit(t.ctx) }

// Rollback implements [driver.Tx]. It uses the context of BeginTx.
func (t tx) Rollback() error { return t.begun.Rollback(t.ctx) }
