package main

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// insertOrSelect returns a server with a known fault, for the suite to find; e.repaired makes it correct. Design: one statement inserts the key, or
// reads the existing row. Of two at once the second waits for the commit of the first, inserts nothing, and reads the state at the start of its own
// statement, without the row. It gets no row at all, and takes that for a new key.
//
// Repair: no row is not a new key: only the request that inserted works, and the row is read in a statement of its own. The hash of the request is
// stored and compared, a duplicate waits for the first one and gets its answer, and a failed key may run again.
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

// insertedOrSelected is the faulty design, as it is taught: one statement inserts the key or reads its row. Of two requests at once the second may
// get no row, and works, too. mine is true if the statement has inserted the row.
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
