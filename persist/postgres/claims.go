package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// Claim implements sqljournal.Dialect: it gives up to n due rows to the owner of the lease. It locks the rows, and then writes into each the progress that
// taken returns for it. The settings leave the UPDATE only the primary key to find the rows by, independent of the planner's statistics of the table.
// where and args select the records. Without a due row the query still returns the time.
func (d *dialect) Claim(ctx context.Context, conn *sql.Conn, where string, args []any, lease sqljournal.Lease, n int, taken func(*sqljournal.Row, int64) []byte) (now int64, err error) {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	query := fmt.Sprintf(`WITH %s, setting AS MATERIALIZED (%s, set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)),
		due AS MATERIALIZED (SELECT %s FROM %s WHERE %s AND state = 0
			AND next_attempt <= (SELECT now FROM clock) AND next_attempt <= ? AND (lease_owner = ? OR lease_until <= (SELECT now FROM clock))
			ORDER BY next_attempt, seq LIMIT %d FOR NO KEY UPDATE SKIP LOCKED)
		SELECT clock.now, %s FROM clock CROSS JOIN setting LEFT JOIN due ON true`,
		d.clock(), d.Abandoned(), sqljournal.ColumnList(""), d.table, where, n, sqljournal.ColumnList("due."))
	w, now, err := d.take(ctx, tx, d.Rebind(query), append(slices.Clone(args), lease.DueBy, []byte{}), taken)
	if err != nil || len(w.ids) == 0 {
		return now, err
	}
	update := fmt.Sprintf(`UPDATE %s r SET lease_owner = $1, lease_until = $2, token = $3, revision = revision + 1, progress = v.progress, send_until = v.send_until
		FROM unnest($4::bytea[], $5::bytea[], $6::bigint[]) AS v (id, progress, send_until) WHERE r.id = v.id`, d.table)
	if _, err := tx.ExecContext(ctx, update, lease.Owner, now+lease.For, lease.Token, w.ids, w.progress, w.sendUntil); err != nil {
		return 0, err
	}
	return now, tx.Commit()
}

// claims are the values written by a claim: of each row its id, its progress and its send_until.
type claims struct {
	ids, progress [][]byte
	sendUntil     []int64
}

// take reads the rows that a claim's query has locked. It calls taken with each, and returns the values to be written into them (w), and the server's time. If
// there are no rows, the query still returns the time.
func (d *dialect) take(ctx context.Context, tx *sql.Tx, query string, args []any, taken func(*sqljournal.Row, int64) []byte) (w claims, now int64, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return w, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var row nullRow // used again for each row: Scan makes new memory for its bytes
	dest := append([]any{&now}, row.dest()...)
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return w, 0, err
		}
		if r := row.row(); r != nil {
			w.ids, w.progress = append(w.ids, r.ID), append(w.progress, taken(r, now))
			w.sendUntil = append(w.sendUntil, r.SendUntil)
		}
	}
	return w, now, rows.Err()
}

// Renew implements sqljournal.Dialect: one statement extends the leases of owner on the rows with these ids. held are the ids of the extended ones: rows
// locked by others are passed over. now is the server's time.
func (d *dialect) Renew(ctx context.Context, conn *sql.Conn, lease sqljournal.Lease, ids [][]byte) (held [][]byte, now int64, err error) {
	query := fmt.Sprintf(`WITH %s, free AS MATERIALIZED (SELECT id FROM %s WHERE id = ANY($2::bytea[]) AND lease_owner = $3 AND state = 0 FOR NO KEY UPDATE SKIP LOCKED),
		mine AS (UPDATE %s r SET lease_until = clock.now + $1 FROM free, clock WHERE r.id = free.id RETURNING r.id)
		SELECT clock.now, mine.id FROM clock LEFT JOIN mine ON true`, d.clock(), d.table, d.table)
	rows, err := conn.QueryContext(ctx, query, lease.For, ids, lease.Owner)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id []byte
		if err := rows.Scan(&now, &id); err != nil {
			return nil, 0, err
		}
		if id != nil {
			held = append(held, id)
		}
	}
	return held, now, rows.Err()
}
