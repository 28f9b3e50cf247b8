package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgres creates a schema of this process with the tables, and opens it. e.end removes it. After an error the pool is of no use, and may be nil.
func (e *env) postgres(tables string) (*pgxpool.Pool, error) {
	ctx := context.Background()
	const address = "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"
	cfg, err := pgxpool.ParseConfig(address + "&pool_max_conns=40")
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.RuntimeParams["search_path"] = e.name
	cfg.ConnConfig.RuntimeParams["application_name"] = e.name
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	e.closers = append(e.closers, func() error {
		admin, err := pgx.Connect(ctx, address)
		if err != nil {
			return err
		}
		// What is still at work would keep the schema.
		_, err = admin.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", e.name)
		_, dropped := admin.Exec(ctx, "DROP SCHEMA IF EXISTS "+e.name+" CASCADE")
		return errors.Join(err, dropped, admin.Close(ctx))
	})
	_, err = pool.Exec(ctx, "CREATE SCHEMA "+e.name+"; "+tables)
	return pool, err
}

const onceTable = `CREATE TABLE once (
	caller text NOT NULL, key text NOT NULL, hash text NOT NULL, answer jsonb,
	PRIMARY KEY (caller, key))`

// errRolledBack ends a transaction whose answer says that nothing was done.
var errRolledBack = errors.New("rolled back")

// once is the repair of the designs over PostgreSQL: it executes a call once for each caller and key. The record of the key is the first thing in the
// transaction of the business, its answer the last. A duplicate waits at the primary key until that transaction ends. A failure is rolled back
// together with its record (errRolledBack: a is the answer all the same). work gets the transaction and must not end it.
func once(c *call, pool *pgxpool.Pool, work func(pgx.Tx) (answer, error)) (a answer) {
	ctx := c.Context()
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		made, err := tx.Exec(ctx, "INSERT INTO once (caller, key, hash) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", c.caller, c.key, c.hash())
		if err != nil {
			return err
		}
		if made.RowsAffected() == 0 {
			a, err = stored(c, tx)
			return err
		}
		if a, err = work(tx); err != nil {
			return err
		}
		if a.Status >= 500 || a.Status == http.StatusTooManyRequests {
			return errRolledBack
		}
		form, err := json.Marshal(a)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE once SET answer = $3 WHERE caller = $1 AND key = $2", c.caller, c.key, form)
		return err
	})
	if err != nil && !errors.Is(err, errRolledBack) {
		return problem(http.StatusServiceUnavailable, "the database refused")
	}
	return a
}

// stored returns the answer to a duplicate: the stored one, marked as a replay, or 422 if the key belongs to another request. The record of the key
// must be committed.
func stored(c *call, tx pgx.Tx) (a answer, err error) {
	var hash string
	var form []byte
	if err := tx.QueryRow(c.Context(), "SELECT hash, answer FROM once WHERE caller = $1 AND key = $2", c.caller, c.key).Scan(&hash, &form); err != nil {
		return a, err
	}
	if hash != c.hash() {
		return problem(http.StatusUnprocessableEntity, "the key belongs to another request"), nil
	}
	err = json.Unmarshal(form, &a)
	return replay(a), err
}
