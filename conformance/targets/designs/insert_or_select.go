package main

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// insertOrSelect: one statement inserts the key, or reads the row that is there.
// Two at once: the second waits for the first's commit, inserts nothing, and reads
// as of the beginning of its own statement, when the row was not there: it is
// given no row at all, and takes that for a new key.
//
// Repair: no row is no new key: only who has inserted works; the row is read in a
// statement of its own. The request's hash is kept and compared, waiters are told
// to wait in a header, and a key that failed may run again.
func insertOrSelect(e *env) (handler, error) {
	pool, err := e.postgres(`CREATE TABLE keys (key text PRIMARY KEY, hash text, status text NOT NULL, answer jsonb); ` + onceTable)
	return func(c *call) answer {
		if c.key == "" {
			return problem(http.StatusBadRequest, "a key is missing")
		}
		if e.repaired {
			return once(c, pool, func(pgx.Tx) (answer, error) { return c.work(), nil })
		}
		a, err := insertedOrSelected(c, pool)
		if err != nil {
			return problem(http.StatusServiceUnavailable, "the database refused")
		}
		return a
	}, err
}

const insertOrSelectText = `WITH made AS (
	INSERT INTO keys (key, status) VALUES ($1, 'processing') ON CONFLICT DO NOTHING RETURNING status, answer, true AS mine)
SELECT status, answer, mine FROM made
UNION ALL SELECT status, answer, false FROM keys WHERE key = $1`

func insertedOrSelected(c *call, pool *pgxpool.Pool) (answer, error) {
	ctx := c.Context()
	var status string
	var form []byte
	var mine bool
	err := pool.QueryRow(ctx, insertOrSelectText, c.key).Scan(&status, &form, &mine)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // "not there, so it is new"
	case err != nil:
		return answer{}, err
	case !mine && status == "completed":
		var a answer
		err := json.Unmarshal(form, &a)
		return a, err
	case !mine && status == "failed":
		return message(http.StatusConflict, "the request failed before"), nil
	case !mine:
		return answer{Status: http.StatusConflict, Header: map[string]string{"Content-Type": "application/json"}, Body: `{"error":"in progress","retry after":5}`}, nil
	}
	a := c.work()
	status = "completed"
	if a.Status >= 500 {
		status = "failed"
	}
	if form, err = json.Marshal(a); err != nil {
		return answer{}, err
	}
	_, err = pool.Exec(ctx, "UPDATE keys SET status = $2, answer = $3 WHERE key = $1", c.key, status, form)
	return a, err
}
