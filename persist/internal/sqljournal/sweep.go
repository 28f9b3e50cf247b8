package sqljournal

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// sweepRows is how many records one transaction of a sweep looks at.
const sweepRows = 256

// sweepMax is how many records a sweep changes where Limits.Max is zero.
const sweepMax = 10_000

// sweeping is one Sweep under way.
type sweeping struct {
	j     *Journal
	l     persist.Limits
	total int
}

// Sweep implements [persist.Journal]. Each step is a transaction of its own, finds its
// records by an index, and passes over those that another process changes just now.
func (j *Journal) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	if l.Now.IsZero() {
		now, err := j.Now(ctx)
		if err != nil {
			return 0, err
		}
		l.Now = now
	}
	if l.Max <= 0 {
		l.Max = sweepMax
	}
	s := sweeping{j: j, l: l}
	for _, shelf := range s.shelves() {
		at := place{}
		for more := true; more; {
			var err error
			if at, more, err = s.step(ctx, shelf, at); err != nil {
				return s.total, err
			}
			if s.total >= l.Max {
				return s.total, nil
			}
		}
	}
	return s.total, nil
}

// place is where a step ended in the index.
type place struct {
	finished int64
	id       []byte
}

// shelves are the ranges of the index that can hold something to sweep: answers under
// chosen and under generated keys, and their tombstones. The tombstones of chosen keys are
// looked at only if they may go, since there may be millions of them.
func (s *sweeping) shelves() []condition {
	now := nanoseconds(s.l.Now)
	answers := condition{"swept = 0 AND generated = ? AND finished <= ?", []any{int64(0), ended(now, s.l.KeepAnswer)}}
	if s.l.KeepAnswer == 0 {
		answers.and("keep_window <= ? - finished", now)
	}
	generated := condition{answers.where, append([]any{int64(1)}, answers.args[1:]...)}
	tombstones := condition{"swept = 1 AND generated = 1 AND finished <= ? AND (unreported = 0 OR keep_window <= ? - finished)", []any{now, now}}
	shelves := []condition{answers, generated, tombstones}
	if s.l.KeepKey != 0 {
		shelves = append(shelves, condition{"swept = 1 AND generated = 0 AND finished <= ?", []any{ended(now, s.l.KeepKey)}})
	}
	return shelves
}

// ended is when a record must have ended, to be older than keep. Of a negative keep, the
// whole past.
func ended(now int64, keep time.Duration) int64 {
	if keep <= 0 {
		return nanoseconds(time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	return now - int64(keep)
}

// step sweeps the next records of one shelf.
func (s *sweeping) step(ctx context.Context, shelf condition, from place) (at place, more bool, err error) {
	c := condition{"finished > 0 AND state >= 2", nil}
	c.and(shelf.where, shelf.args...)
	if from.id != nil {
		c.and("(finished > ? OR finished = ? AND id > ?)", from.finished, from.finished, from.id)
	}
	query := s.j.d.Rebind(fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY finished, id LIMIT %d FOR UPDATE SKIP LOCKED",
		sweptColumns, s.j.d.Records(), c.where, min(sweepRows, s.l.Max-s.total)))
	changed := 0
	err = s.j.attempt(ctx, func(ctx context.Context, conn *sql.Conn) error {
		at, more, changed = from, false, 0
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if bound := s.j.d.Abandoned(); bound != "" {
			if _, err := tx.ExecContext(ctx, bound); err != nil {
				return err
			}
		}
		rows, err := readSwept(ctx, tx, query, c.args)
		if err != nil {
			return err
		}
		if changed, err = s.change(ctx, tx, rows); err != nil {
			return err
		}
		if n := len(rows); n > 0 {
			at, more = place{rows[n-1].Finished, rows[n-1].ID}, true
		}
		return tx.Commit()
	})
	s.total += changed
	return at, more, err
}

// sweptColumns are what a sweep reads: all but the bodies.
const sweptColumns = "id, seq, revision, account, op_key, fingerprint, generated, created, keep_window, origin, " +
	"state, unreported, swept, next_attempt, finished, lease_owner, lease_until, intent, progress"

// readSwept reads the rows of one step.
func readSwept(ctx context.Context, tx *sql.Tx, query string, args []any) (list []Row, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r Row
		err := rows.Scan(&r.ID, &r.Seq, &r.Revision, &r.Account, &r.Key, &r.Fingerprint, &r.Generated, &r.Created, &r.Window, &r.Origin,
			&r.State, &r.Unreported, &r.Swept, &r.NextAttempt, &r.Finished, &r.LeaseOwner, &r.LeaseUntil, &r.Intent, &r.Progress)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// change does to the rows what the limits say, and returns how many it changed. A damaged
// row stays as it is.
func (s *sweeping) change(ctx context.Context, tx *sql.Tx, rows []Row) (changed int, err error) {
	strip := s.j.d.Rebind("UPDATE " + s.j.d.Records() + " SET swept = 1, revision = revision + 1, intent = ?, progress = ?, body = NULL, answer = NULL WHERE id = ?")
	var drop []any
	for i := range rows {
		rec, _, _, err := rows[i].head()
		if err != nil {
			continue
		}
		whole, answer := s.l.Sweep(&rec, s.l.Now)
		switch {
		case whole:
			drop = append(drop, rows[i].ID)
		case answer:
			rec.Strip()
			rows[i].Intent, rows[i].Progress = encodeIntent(&rec), encodeProgress(&rec)
			if _, err := tx.ExecContext(ctx, strip, rows[i].Intent, rows[i].Progress, rows[i].ID); err != nil {
				return 0, err
			}
			changed++
		}
	}
	if len(drop) > 0 {
		list := strings.TrimSuffix(strings.Repeat("?, ", len(drop)), ", ")
		remove := s.j.d.Rebind("DELETE FROM " + s.j.d.Records() + " WHERE id IN (" + list + ")")
		if _, err := tx.ExecContext(ctx, remove, drop...); err != nil {
			return 0, err
		}
	}
	return changed + len(drop), nil
}
