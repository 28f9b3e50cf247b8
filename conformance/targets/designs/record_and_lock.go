package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"
)

// The states of a record.
const (
	processing = 0
	succeeded  = 1
	failed     = 2
)

// lockTime bounds the lock in front of the table.
const lockTime = 5 * time.Second

// recordAndLock returns a server with a known fault, for the suite to find; e.repaired makes it correct. Design: a lock in Redis for five seconds,
// and behind it a table of requests with their state. The header is X-Request-ID. The hash is not compared, and a failed request stays failed.
//
// Repair: the table's UNIQUE constraint is the lock, and the one in Redis goes: with it, one of two repeats of a finished request was told to wait.
// The hash is compared, the status is stored with the body, a failed request may run again, and a record at work belongs to its maker only for the
// longest time of the work.
func recordAndLock(e *env) (handler, error) {
	s, err := e.redis()
	if err != nil {
		return nil, err
	}
	db, err := e.mariadb(`CREATE TABLE record (
		app_id VARBINARY(200) NOT NULL, request_id VARBINARY(255) NOT NULL, request_hash CHAR(64) NOT NULL, status TINYINT NOT NULL,
		response_status INT NOT NULL DEFAULT 0, response_place VARCHAR(200) NOT NULL DEFAULT '', response_body TEXT,
		created DATETIME(3) NOT NULL DEFAULT NOW(3), updated DATETIME(3) NOT NULL DEFAULT NOW(3), UNIQUE (app_id, request_id))`)
	e.keyHeader = "X-Request-ID"
	return func(c *call) answer {
		if c.key == "" || len(c.key) > 255 {
			return answer{Status: http.StatusBadRequest, Header: map[string]string{"Content-Type": "text/plain"}, Body: "missing X-Request-ID"}
		}
		ctx := c.Context()
		r := &recorded{call: c, db: db, hash: c.hash()}
		if !e.repaired {
			lock := s.prefix + "idem:lock:" + c.key
			got, err := s.SetNX(ctx, lock, 1, lockTime).Result()
			if err != nil {
				return problem(http.StatusInternalServerError, "no Redis")
			}
			if !got {
				return message(http.StatusConflict, "being processed")
			}
			defer s.Del(ctx, lock)
			r.hash = c.bodyHash()
		}
		a, err := r.run(ctx)
		if err != nil {
			return problem(http.StatusInternalServerError, "the database refused")
		}
		return a
	}, err
}

// recorded is one call with its record.
type recorded struct {
	*call
	db   *sql.DB
	hash string // of the request; as taught, of the body alone
}

// run inserts the record, works, and stores the answer. For an existing record it returns the
// answer from found, unless the request may run again. With the repair a crash leaves a failed
// record.
func (r *recorded) run(ctx context.Context) (answer, error) {
	_, err := r.db.ExecContext(ctx, "INSERT INTO record (app_id, request_id, request_hash, status) VALUES (?, ?, ?, ?)", r.caller, r.key, r.hash, processing)
	if duplicate(err) {
		a, again, err := r.found(ctx)
		if err != nil || !again {
			return a, err
		}
	} else if err != nil {
		return answer{}, err
	}
	settled := false
	defer func() {
		if !settled && r.e.repaired { // it crashed
			_, _ = r.db.ExecContext(ctx, "UPDATE record SET status = ? WHERE app_id = ? AND request_id = ?", failed, r.caller, r.key)
		}
	}()
	a := r.work()
	state := succeeded
	if a.Status >= 500 || a.Status == http.StatusTooManyRequests {
		state = failed
	}
	_, err = r.db.ExecContext(ctx, "UPDATE record SET status = ?, response_status = ?, response_place = ?, response_body = ?, updated = NOW(3) WHERE app_id = ? AND request_id = ?",
		state, a.Status, a.Header["Location"], a.Body, r.caller, r.key)
	settled = err == nil
	return a, err
}

// found returns the answer to a request with a record. A record at work is old after 30 s, the longest time of the work. If again is true there is no
// answer: the record was failed or old, this request has taken it over, and must run.
func (r *recorded) found(ctx context.Context) (a answer, again bool, err error) {
	var hash, place string
	var state, status int
	var body sql.NullString
	var old bool
	row := r.db.QueryRowContext(ctx, `SELECT request_hash, status, response_status, response_place, response_body, updated < NOW(3) - INTERVAL 30 SECOND
		FROM record WHERE app_id = ? AND request_id = ?`, r.caller, r.key)
	if err := row.Scan(&hash, &state, &status, &place, &body, &old); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return wait(), false, nil
		}
		return a, false, err
	}
	plain := map[string]string{"Content-Type": "application/json"}
	if !r.e.repaired {
		if state == succeeded {
			return answer{Status: http.StatusOK, Header: plain, Body: body.String}, false, nil
		}
		return message(http.StatusConflict, "status is not final"), false, nil
	}
	switch {
	case hash != r.hash:
		return problem(http.StatusUnprocessableEntity, "the id belongs to another request"), false, nil
	case state == succeeded:
		if place != "" {
			plain["Location"] = place
		}
		return replay(answer{Status: status, Header: plain, Body: body.String}), false, nil
	case state == processing && !old:
		return wait(), false, nil
	}
	update, err := r.db.ExecContext(ctx, "UPDATE record SET status = ?, updated = NOW(3) WHERE app_id = ? AND request_id = ? AND status = ?", processing, r.caller, r.key, state)
	if err != nil {
		return a, false, err
	}
	n, err := update.RowsAffected()
	return wait(), n == 1, err // 0: another request has taken it over in between
}
