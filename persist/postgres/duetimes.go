package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// originOrder leaves only the index of origins to read them in their order, independent of the planner's statistics
// of the table. A statement sent with it, in one transaction, is planned after it.
const originOrder = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
	set_config('enable_sort', 'off', true), set_config('jit', 'off', true)`

// DueTimes implements sqljournal.Dialect: it calls found with the first due time of each of the next n groups (an origin and needs). Each step of the
// recursion finds the first record of the next group in the index. It begins behind the group of after (the hash of an origin) and needs. The recursion ends
// after the number of rows asked for. originOrder is a setting for the planner, sent before the query in one round trip.
func (d *dialect) DueTimes(ctx context.Context, conn *sql.Conn, where string, args []any, after, needs []byte, n int, found func(origin, needs []byte, next int64)) error {
	query := d.Rebind(fmt.Sprintf(`WITH RECURSIVE step AS (
			SELECT ?::bytea AS hash, ?::bytea AS needs, NULL::bytea AS origin, 0::bigint AS next_attempt
			UNION ALL
			SELECT n.* FROM step CROSS JOIN LATERAL (
				SELECT sha256(r.origin), r.needs, r.origin, r.next_attempt FROM %s r WHERE %s AND (sha256(r.origin), r.needs) > (step.hash, step.needs)
				ORDER BY sha256(r.origin), r.needs, r.next_attempt LIMIT 1
			) n
		) SELECT origin, needs, next_attempt FROM step WHERE origin IS NOT NULL LIMIT %d`, d.table, where, n))
	return conn.Raw(func(driverConn any) error {
		pg := connOf(driverConn)
		if pg.IsClosed() {
			return driver.ErrBadConn
		}
		var batch pgx.Batch
		batch.Queue(originOrder)
		batch.Queue(query, slices.Concat([]any{after, needs}, args)...)
		return readOrigins(pg.SendBatch(ctx, &batch), found)
	})
}

// readOrigins reads the results of the two statements of DueTimes, a setting and the query, to their end, and calls found with each row of the query.
func readOrigins(results pgx.BatchResults, found func(origin, needs []byte, next int64)) (err error) {
	defer func() {
		if closed := results.Close(); err == nil { // after an error, Close returns the same one
			err = closed
		}
	}()
	if _, err := results.Exec(); err != nil {
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	var origin, needs []byte
	var next int64
	_, err = pgx.ForEachRow(rows, []any{&origin, &needs, &next}, func() error {
		found(origin, needs, next)
		return nil
	})
	return err
}
