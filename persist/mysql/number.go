package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// This file numbers records.

// Number implements sqljournal.Dialect: it gives numbers to the committed records without one. After numberTries a record locked by another transaction is
// passed over: its number will be a later one.
func (d *dialect) Number(ctx context.Context, conn *sql.Conn) error {
	for range numberTries {
		var id []byte
		err := conn.QueryRowContext(ctx, "SELECT id FROM "+d.Records()+" WHERE seq IS NULL LIMIT 1").Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		for n := numberRows; n == numberRows; { // a full batch: there may be more
			if n, err = d.numberSome(ctx, conn); err != nil {
				return err
			}
			if n > 0 {
				continue
			}
			select { // others have locked all that are left
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(numberPause):
			}
		}
	}
	return nil
}

// numberSome gives numbers to some records, in one transaction, and returns how many: fewer than numberRows if no more are free. It locks a gate, a row of a
// small table, as each transaction that takes a number does: Barrier waits for it.
func (d *dialect) numberSome(ctx context.Context, conn *sql.Conn) (n int, err error) {
	tx, err := conn.BeginTx(ctx, readCommitted())
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	var gate int
	if err := tx.QueryRowContext(ctx, d.bound+"SELECT gate FROM "+d.gate()+" WHERE gate = ? LOCK IN SHARE MODE", rand.IntN(gates)).Scan(&gate); err != nil {
		return 0, err
	}
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT id FROM %s WHERE seq IS NULL ORDER BY created LIMIT %d FOR UPDATE SKIP LOCKED", d.Records(), numberRows))
	if err != nil {
		return 0, err
	}
	ids, err := idsOf(rows)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET seq = NEXTVAL(%soncehttp_seq) WHERE id IN (%s) ORDER BY created", d.Records(), d.prefix, sqljournal.Parameters(len(ids))), ids...)
	if err != nil {
		return 0, err
	}
	return len(ids), tx.Commit()
}

// idsOf reads a column of ids, and returns them as parameters of a statement. It closes rows.
func idsOf(rows *sql.Rows) (ids []any, err error) {
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id []byte
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
