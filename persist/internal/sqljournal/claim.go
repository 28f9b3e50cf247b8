package sqljournal

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Now implements [persist.Claimer]. It is the clock of the database server.
func (j *Journal) Now(ctx context.Context) (time.Time, error) {
	var now int64
	err := j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT "+j.d.Now()).Scan(&now)
	})
	return instant(now), err
}

// Claim implements [persist.Claimer]. What a claim took whose answer was lost waits for the
// end of its lease, as does a damaged record.
func (j *Journal) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) (claimed []persist.Record, at time.Time, err error) {
	if n <= 0 {
		at, err := j.Now(ctx)
		return nil, at, err
	}
	if err := j.number(ctx); err != nil {
		return nil, time.Time{}, err
	}
	l := Lease{Owner: []byte(owner), For: int64(lease), Token: NewToken(), DueBy: math.MaxInt64}
	if !q.DueBy.IsZero() {
		l.DueBy = nanoseconds(q.DueBy)
	}
	q.DueBy = time.Time{}
	c := j.selecting(&q)
	c.and("seq > ?", number(q.After))
	var rows []Row
	var now int64
	err = j.attempt(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
		rows, now, err = j.d.Claim(ctx, conn, c.where, c.args, l, n)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	claimed = make([]persist.Record, 0, len(rows))
	var damaged error
	for i := range rows {
		rec, err := rows[i].Record()
		if err != nil {
			damaged = j.failed(err)
			continue
		}
		claimed = append(claimed, rec)
	}
	if len(claimed) > 0 {
		damaged = nil
	}
	return claimed, instant(now), damaged
}

// Renew implements [persist.Claimer].
func (j *Journal) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) (held []persist.ID, at time.Time, err error) {
	if len(ids) == 0 {
		at, err := j.Now(ctx)
		return nil, at, err
	}
	byRow := make(map[string]persist.ID, len(ids))
	asked := make([][]byte, 0, len(ids))
	for _, id := range ids {
		row := RowID(id)
		byRow[string(row)] = id
		asked = append(asked, row)
	}
	var rows [][]byte
	var now int64
	err = j.attempt(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
		rows, now, err = j.d.Renew(ctx, conn, Lease{Owner: []byte(owner), For: int64(lease)}, asked)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, row := range rows {
		held = append(held, byRow[string(row)])
	}
	return held, instant(now), nil
}

// DueTimes implements [persist.DueTimes]. It steps from origin to origin through an index.
func (j *Journal) DueTimes(ctx context.Context, q persist.Query) (all []persist.DueTime, err error) {
	if err := j.number(ctx); err != nil {
		return nil, err
	}
	c := j.selecting(&persist.Query{Account: q.Account, AllAccounts: q.AllAccounts, Origin: q.Origin})
	c.and("state = 0 AND (lease_owner = ? OR lease_until <= "+j.d.Now()+")", []byte{})
	hash := j.d.OriginHash()
	query := j.d.Rebind(fmt.Sprintf("SELECT %s, origin, next_attempt FROM %s WHERE %s AND %s > ? ORDER BY %s, next_attempt LIMIT 1",
		hash, j.d.Records(), c.where, hash, hash))
	err = j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
		all = nil
		for last := make([]byte, 0, sha256.Size); ; {
			var origin []byte
			var next int64
			err := conn.QueryRowContext(ctx, query, append(slices.Clone(c.args), last)...).Scan(&last, &origin, &next)
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			all = append(all, persist.DueTime{Origin: string(origin), At: instant(next)})
		}
	})
	return all, err
}
