package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
)

// DueTimes implements sqljournal.Dialect: it calls found with the first due time of each of the next n groups (an origin and needs). The server plans a
// condition on a column of another row, as in a recursive query, without the range of the index, and would read the index from its start at each step. In a
// loop each step is a statement of its own with a constant, and a result of its own: first the next needs of the same origin, then the next origin. after and
// needs are the hash of the last group's origin, and its needs.
func (d *dialect) DueTimes(ctx context.Context, conn *sql.Conn, where string, args []any, after, needs []byte, n int, found func(origin, needs []byte, next int64)) (err error) {
	step := fmt.Sprintf(`SELECT origin_hash, needs, origin, next_attempt INTO v_hash, v_needs, v_origin, v_next FROM %s FORCE INDEX (record_origin)
				WHERE %s AND `, d.Records(), where)
	query := fmt.Sprintf(`BEGIN NOT ATOMIC
		DECLARE v_hash VARBINARY(32) DEFAULT ?;
		DECLARE v_needs VARBINARY(%d) DEFAULT ?;
		DECLARE v_origin MEDIUMBLOB;
		DECLARE v_next BIGINT;
		DECLARE v_left INT DEFAULT %d;
		DECLARE v_none INT;
		DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_none = 1;
		WHILE v_left > 0 DO
			SET v_none = 0;
			%s origin_hash = v_hash AND needs > v_needs ORDER BY needs, next_attempt LIMIT 1;
			IF v_none = 1 THEN
				SET v_none = 0;
				%s origin_hash > v_hash ORDER BY origin_hash, needs, next_attempt LIMIT 1;
			END IF;
			IF v_none = 1 THEN
				SET v_left = 0;
			ELSE
				SELECT v_origin, v_needs, v_next;
				SET v_left = v_left - 1;
			END IF;
		END WHILE;
	END`, persist.NeedsBytesMax, n, step, step)
	rows, err := conn.QueryContext(ctx, query, slices.Concat([]any{after, needs}, args, args)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			var origin, needs []byte
			var next int64
			if err := rows.Scan(&origin, &needs, &next); err != nil {
				return err
			}
			found(origin, needs, next)
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	return rows.Err()
}
