package sqljournal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Now implements [persist.Claimer]. It returns the time of the database server, the clock of all records of the journal.
func (j *Journal) Now(ctx context.Context) (time.Time, error) {
	if j == nil {
		return time.Time{}, errNotOpened
	}
	var now int64
	err := j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT "+j.d.Now()).Scan(&now)
	})
	return instant(now), err
}

// Claim implements [persist.Claimer]: it gives due records to owner for the time of a lease. If the answer to a claim is lost, its records are free
// again after that time; so is a damaged record, which was leased, too, but cannot be returned.
func (j *Journal) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) (claimed []persist.Record, at time.Time, err error) {
	return j.claim(ctx, q, owner, lease, n, nil)
}

// ClaimToSend implements [persist.SendClaimer]: it claims records as Claim does, and marks those as maybe sent that the claimer may send at once.
func (j *Journal) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) (claimed []persist.Record, at time.Time, err error) {
	return j.claim(ctx, q, owner, lease, n, &sending)
}

// claim is Claim: it gives up to n due records without a lasting lease to owner. If sending is not nil, it is ClaimToSend: a record that may be sent
// at once is marked as maybe sent in its row, and returned without this mark. at is the server's time. First all records get numbers (seq), since q.After
// compares these. A damaged record is passed over, and its error returned only if no other was claimed. Records of other formats are left to the programs that
// can read them: the column needs (what a client must have to send the record) begins with the format, so a range of its texts selects this one. A query with
// Needs names the format itself.
func (j *Journal) claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int, sending *time.Duration) (claimed []persist.Record, at time.Time, err error) {
	if j == nil {
		return nil, time.Time{}, errNotOpened
	}
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
	q.DueBy = time.Time{} // the dialect compares the lease's DueBy, together with the server's time
	c := j.selecting(&q)
	c.and("seq > ?", number(q.After))
	// A group (an origin and needs) is found by an index of groups. A query without needs selects those of this format.
	if l.Group = q.Origin != "" && q.Needs != ""; q.Needs == "" {
		c.and("needs >= ? AND needs < ?", []byte(thisFormat), []byte(pastFormat))
	}
	var now int64
	var damaged error
	err = j.attempt(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
		claimed, damaged = make([]persist.Record, 0, n), nil
		now, err = j.d.Claim(ctx, conn, c.where, c.args, l, n, func(row *Row, now int64) []byte {
			row.Revision++
			claimed = append(claimed, persist.Record{})
			rec := &claimed[len(claimed)-1]
			if err := row.decode(rec); err != nil {
				claimed, damaged = claimed[:len(claimed)-1], j.failed(err)
				return row.Progress
			}
			rec.TakeLease(owner, instant(now+l.For))
			rec.Drives++
			if at := instant(now); sending != nil && rec.MarkedByClaim(at) {
				marked := *rec // the record itself is returned without the mark
				marked.MaybeSent, marked.FirstSent = true, at
				marked.ExtendSendUntil(at.Add(*sending))
				row.SendUntil = nanoseconds(marked.SendUntil)
				return encodeProgress(&marked)
			}
			return encodeProgress(rec)
		})
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	if len(claimed) > 0 {
		damaged = nil
	}
	return claimed, instant(now), damaged
}

// Renew implements [persist.Claimer]: it extends the leases of owner on these records. held are the IDs of those extended, and at is the server's time. A
// record without a lease of owner is left out, without an error. A record that another transaction has locked keeps no other from being renewed.
func (j *Journal) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) (held []persist.ID, at time.Time, err error) {
	if j == nil {
		return nil, time.Time{}, errNotOpened
	}
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
	var rows, locked [][]byte
	var now int64
	err = j.attempt(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
		rows, locked, now, err = j.renew(ctx, conn, Lease{Owner: []byte(owner), For: int64(lease)}, asked)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, row := range rows {
		held = append(held, byRow[string(row)])
	}
	if len(locked) > 0 {
		err = j.failed(fmt.Errorf("%d of %d leases are not renewed, since other transactions have locked the records, such as that of the key %q",
			len(locked), len(ids), byRow[string(locked[0])].Key))
	}
	return held, instant(now), err
}

// lockedWait is the longest wait of Renew for records locked by others. The wait is also at most half of Renew's
// time.
const lockedWait = 2 * time.Second

// renew extends the leases of one owner on the records with these ids. It tries those of them that other transactions have locked again and again, until none
// is left, or the wait is over: lockedWait, or half of the time left in ctx. held are the ids of the renewed ones, locked those of the ones left, and now is
// the server's time in the first round: from that, the lease of each held record lasts at least its time.
func (j *Journal) renew(ctx context.Context, conn *sql.Conn, lease Lease, ids [][]byte) (held, locked [][]byte, now int64, err error) {
	deadline, _ := ctx.Deadline() // each try has one
	end := time.Now().Add(min(lockedWait, time.Until(deadline)/2))
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		renewed, at, err := j.d.Renew(ctx, conn, lease, ids)
		if err != nil {
			return nil, nil, 0, err
		}
		held, now = append(held, renewed...), cmp.Or(now, at)
		if ids, err = j.owned(ctx, conn, lease.Owner, without(ids, renewed)); err != nil {
			return nil, nil, 0, err
		}
		if len(ids) == 0 || time.Now().After(end) {
			return held, ids, now, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, 0, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// without returns a copy of ids that lacks those in the second list.
func without(ids, those [][]byte) [][]byte {
	known := make(map[string]bool, len(those))
	for _, id := range those {
		known[string(id)] = true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id []byte) bool { return known[string(id)] })
}

// owned returns the ids among these whose records are pending and leased to owner. It sees committed changes only, and does not wait for locks.
func (j *Journal) owned(ctx context.Context, conn *sql.Conn, owner []byte, ids [][]byte) (owned [][]byte, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	args := []any{owner}
	for _, id := range ids {
		args = append(args, id)
	}
	query := "SELECT id FROM " + j.d.Records() + " WHERE lease_owner = ? AND state = 0 AND id IN (?" + strings.Repeat(", ?", len(ids)-1) + ")"
	rows, err := conn.QueryContext(ctx, j.d.Rebind(query), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id []byte
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		owned = append(owned, id)
	}
	return owned, rows.Err()
}
