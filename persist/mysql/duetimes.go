package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// DueTimes implements sqljournal.Dialect. The server plans a condition on a column of another row, as in a recursive query, without
// the range of the index, and would read the index from its start at each step. In a loop each step is a statement of
// its own with a constant, and a result of its own.
func (d *dialect) DueTimes(ctx context.Context, conn *sql.Conn, where string, args []any, after []byte, n int, found func(origin []byte, next int64)) (err error) {
	query := fmt.Sprintf(`BEGIN NOT ATOMIC
		DECLARE v_hash VARBINARY(32) DEFAULT ?;
		DECLARE v_origin MEDIUMBLOB;
		DECLARE v_next BIGINT;
		DECLARE v_left INT DEFAULT %d;
		DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_left = 0;
		WHILE v_left > 0 DO
			SELECT origin_hash, origin, next_attempt INTO v_hash, v_origin, v_next FROM %s FORCE INDEX (record_origin)
				WHERE %s AND origin_hash > v_hash ORDER BY origin_hash, next_attempt LIMIT 1;
			IF v_left > 0 THEN
				SELECT v_origin, v_next;
				SET v_left = v_left - 1;
			END IF;
		END WHILE;
	END`, n, d.Records(), where)
	rows, err := conn.QueryContext(ctx, query, append([]any{after}, args...)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			var origin []byte
			var next int64
			if err := rows.Scan(&origin, &next); err != nil {
				return err
			}
			found(origin, next)
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	return rows.Err()
}
