package sqljournal

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// Probe implements [persist.Prober]: it returns the record of this ID, as Get does; but its ErrNotFound proves that nobody has begun one. Without a record,
// it waits for open transactions that have begun one: it inserts a record of the ID, which has to wait for them, and rolls the insert back. The inserted record
// is a dummy: only its ID matters.
func (j *Journal) Probe(ctx context.Context, id persist.ID) (persist.Record, error) {
	rec, err := j.Get(ctx, id)
	if !errors.Is(err, persist.ErrNotFound) {
		return rec, err
	}
	row := NewRow(&persist.Record{ID: id, Revision: 1, Method: "PROBE", Fingerprint: make([]byte, 32)})
	row.Needs = []byte("1 seal=probe") // as of an encrypted record: a sealed journal refuses others; the row is rolled back
	var standing *Row
	err = j.attempt(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
		standing, err = j.beginInVain(ctx, conn, row)
		return err
	})
	switch {
	case err != nil && j.d.Waited(err):
		return persist.Record{}, fmt.Errorf("%w: another transaction has begun the key %q and is still open: %w", persist.ErrUncertain, id.Key, err)
	case err != nil:
		return persist.Record{}, err
	case bytes.Equal(standing.Token, row.Token):
		return persist.Record{}, notFound(id)
	}
	if rec, err = standing.Record(); err != nil {
		return persist.Record{}, j.failed(err)
	}
	return rec, nil
}

// beginInVain inserts the row in a transaction, and rolls it back. It returns the row that stands there: the one given if there was none, or that of
// another transaction. A missing row means a race with a Begin that has just been undone: errAgain lets the caller try again. If the connection is lost, the
// server rolls back.
func (j *Journal) beginInVain(ctx context.Context, conn *sql.Conn, row *Row) (*Row, error) {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	if bound := j.d.Abandoned(); bound != "" { // makes the server end the transaction, should this process leave it open
		if _, err := tx.ExecContext(ctx, bound); err != nil {
			return nil, err
		}
	}
	standing, err := j.d.Begin(ctx, OnTx(tx), row)
	if err == nil && standing == nil {
		err = errAgain
	}
	return standing, err
}
