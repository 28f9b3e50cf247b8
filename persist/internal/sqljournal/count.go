package sqljournal

import (
	"context"
	"database/sql"
	"errors"

	"github.com/oncehttp/oncehttp/persist"
)

// CountQuery returns the query of Count: of each state and reason of unfinished records their number, the earliest created, and the
// earliest next_attempt of all pending records, null if there is none. The row of state -1 has the number of owed results. The state 0 is pending, and those
// below 2 are unfinished. It reads indexes alone.
func CountQuery(d Dialect) string {
	return "SELECT state, hold_reason, COUNT(*), MIN(created), (SELECT MIN(next_attempt) FROM " + d.Records() + " WHERE state = 0) FROM " +
		d.By(CountIndex) + " WHERE state < 2 GROUP BY state, hold_reason UNION ALL SELECT -1, '', COUNT(*), 0, NULL FROM " + d.Records() + " WHERE " + d.Owed()
}

// Count implements [persist.Counter]: it returns the numbers of pending and held records and of owed results, the begin of the oldest unfinished record, and
// the next due time. It reads the index entries of these records alone. A row of the result with a negative state has the number of owed results.
func (j *Journal) Count(ctx context.Context) (c persist.Counts, err error) {
	if j == nil {
		return c, errNotOpened
	}
	err = j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) (err error) {
		c = persist.Counts{Held: map[persist.HoldReason]int{}}
		rows, err := conn.QueryContext(ctx, CountQuery(j.d))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		var oldest int64
		for rows.Next() {
			var state, n, created int64
			var reason []byte
			var next sql.NullInt64
			if err := rows.Scan(&state, &reason, &n, &created, &next); err != nil {
				return err
			}
			if state < 0 {
				c.Owed = int(n)
				continue
			}
			if oldest == 0 || created < oldest { // 0: none yet
				oldest = created
			}
			if persist.State(state) == persist.StateHeld {
				c.Held[persist.HoldReason(reason)] += int(n)
				continue
			}
			c.Pending, c.NextDue = c.Pending+int(n), instant(next.Int64)
		}
		c.Oldest = instant(oldest)
		return rows.Err()
	})
	if err != nil {
		return persist.Counts{}, err
	}
	return c, nil
}
