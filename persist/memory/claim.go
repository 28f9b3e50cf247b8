package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// InProcess implements [persist.InProcess]: no other process can reach this journal.
func (j *Journal) InProcess() bool { return true }

// Now implements [persist.Claimer]. The journal's clock is that of the process. It fails if the journal is closed or ctx has ended.
func (j *Journal) Now(ctx context.Context) (time.Time, error) {
	if err := j.Flush(ctx); err != nil {
		return time.Time{}, err
	}
	return now(), nil
}

// now returns the wall clock alone (Round drops the monotonic clock), as it would be read by another process.
func now() time.Time { return time.Now().Round(0) }

// Claim implements [persist.Claimer]: it gives up to n due records to owner, for the time of a lease. It looks at every unfinished record.
func (j *Journal) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	return j.claim(ctx, q, owner, lease, n, nil)
}

// ClaimToSend implements [persist.SendClaimer]: it claims records as Claim does, and marks those as maybe sent that the claimer may send at once.
// sending is how long after the claim such a send may be on its way.
func (j *Journal) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	return j.claim(ctx, q, owner, lease, n, func(rec *persist.Record, now time.Time) {
		rec.MaybeSent, rec.FirstSent = true, now
		rec.ExtendSendUntil(now.Add(sending))
	})
}

// claim gives up to n pending records, due and without a lease that still lasts, to owner for the time of lease. Those due for longest come first. If mark is
// not nil, it is called with each record that may be sent at once, and changes it to say so (ClaimToSend).
func (j *Journal) claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int, mark func(rec *persist.Record, now time.Time)) ([]persist.Record, time.Time, error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return nil, time.Time{}, errClosed()
	}
	now := now()
	due := slices.DeleteFunc(slices.Clone(j.candidates(&q, q.After)), func(e *entry) bool {
		return e.dropped || e.state != persist.StatePending || e.nextAttempt.After(now) || !e.match(&q)
	})
	slices.SortStableFunc(due, func(a, b *entry) int {
		return cmp.Or(a.nextAttempt.Compare(b.nextAttempt), cmp.Compare(a.seq, b.seq))
	})
	var claimed []persist.Record
	for _, e := range due {
		if len(claimed) >= n {
			break
		}
		rec, err := e.record()
		if err != nil {
			return nil, now, err
		}
		if rec.Leased("", now) {
			continue
		}
		rec.TakeLease(owner, now.Add(lease))
		rec.Revision++
		rec.Drives++
		claimed = append(claimed, rec)
		if mark != nil && rec.MarkedByClaim(now) {
			mark(&rec, now)
		}
		e.set(&rec, codec.AppendProgress(nil, &rec, codec.Inline))
	}
	return claimed, now, nil
}

// Renew implements [persist.Claimer]: it extends the leases that owner has on these records, and returns the ids of the records that owner still has.
// Revisions stay as they are.
func (j *Journal) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) (held []persist.ID, at time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return nil, time.Time{}, errClosed()
	}
	at = now()
	for _, id := range ids {
		e := j.find(id)
		if e == nil || e.state != persist.StatePending {
			continue
		}
		rec, err := e.record()
		if err != nil {
			return nil, at, err
		}
		if rec.LeaseOwner != owner {
			continue
		}
		rec.LeaseUntil = at.Add(lease)
		e.set(&rec, codec.AppendProgress(nil, &rec, codec.Inline))
		held = append(held, id)
	}
	return held, at, nil
}

// DueTimes implements [persist.DueTimes]: the first due time of the pending records of each origin with the same needs (the requirements on a client). Next is
// the first one after q.DueBy. A record with a lease that lasts is left out: another claimer has it. It looks at every record, as a listing does: this journal
// is for tests.
func (j *Journal) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return nil, errClosed()
	}
	by := q.DueBy
	q = persist.Query{Account: q.Account, AllAccounts: q.AllAccounts, Origin: q.Origin, Needs: q.Needs, States: []persist.State{persist.StatePending}}
	type group struct{ origin, needs string }
	now, first := now(), map[group]persist.DueTime{}
	for _, e := range j.order {
		if e.dropped || !e.match(&q) {
			continue
		}
		rec, err := e.record()
		if err != nil {
			return nil, err
		}
		if rec.Leased("", now) {
			continue
		}
		in := group{rec.Origin, rec.Needs().String()}
		due, known := first[in]
		if at := rec.NextAttempt; !known || at.Before(due.At) {
			due.Origin, due.Needs, due.At = in.origin, in.needs, at
		}
		if at := rec.NextAttempt; !by.IsZero() && at.After(by) && (due.Next.IsZero() || at.Before(due.Next)) {
			due.Next = at
		}
		first[in] = due
	}
	return slices.Collect(maps.Values(first)), nil
}
