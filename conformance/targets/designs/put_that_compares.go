package main

import (
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"
)

// putThatCompares returns a server with a known fault, for the suite to find; e.repaired makes it correct. Design: a PUT has effects (a log, a
// message, a webhook) only if its data differ from the stored data. Keys are not read.
//
// Repair: the key and its answer are recorded in the transaction of the change, so that an old PUT that comes again is answered and not applied.
func putThatCompares(e *env) (handler, error) {
	pool, err := e.postgres("CREATE TABLE document (ref text PRIMARY KEY, data text NOT NULL, changed timestamptz NOT NULL DEFAULT now()); " + onceTable)
	return func(c *call) answer {
		if e.repaired {
			if c.key == "" {
				return problem(http.StatusBadRequest, "a key is missing")
			}
			return once(c, pool, func(tx pgx.Tx) (answer, error) { return put(c, tx) })
		}
		var a answer
		err := pgx.BeginFunc(c.Context(), pool, func(tx pgx.Tx) (err error) {
			if a, err = put(c, tx); err == nil && a.Status >= 500 {
				err = errRolledBack
			}
			return err
		})
		if err != nil && !errors.Is(err, errRolledBack) {
			return problem(http.StatusServiceUnavailable, "the database refused")
		}
		return a
	}, err
}

// put applies a PUT in the caller's transaction, and returns its answer: a repeat of the stored data changes nothing, and has no effect. An old PUT
// that comes again after a newer one differs, and is applied. After a failure nothing is stored.
func put(c *call, tx pgx.Tx) (answer, error) {
	ctx := c.Context()
	var data string
	err := tx.QueryRow(ctx, "SELECT data FROM document WHERE ref = $1", c.ref).Scan(&data)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return answer{}, err
	}
	if err == nil && data == string(c.body) {
		return message(http.StatusOK, "nothing has changed"), nil
	}
	a := c.work()
	if a.Status >= 400 {
		return a, nil
	}
	_, err = tx.Exec(ctx, "INSERT INTO document (ref, data) VALUES ($1, $2) ON CONFLICT (ref) DO UPDATE SET data = excluded.data, changed = now()", c.ref, string(c.body))
	return a, err
}
