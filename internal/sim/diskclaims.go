package sim

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the methods of the simulated journal for processes sharing it: claims, leases and due times.

// claimFunc is a Claim or a ClaimToSend.
type claimFunc func(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error)

// Claim implements [persist.Claimer]. A crash may take the claim back. Another process can then claim the record too early, and the operation is sent
// once more at most.
func (d *disk) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	return d.claim(ctx, d.mem.Claim, nil, q, owner, lease, n)
}

// ClaimToSend implements [persist.SendClaimer]. MaybeSent and FirstSent, which it sets, are durable when it returns.
func (d *disk) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	claim := func(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
		return d.mem.ClaimToSend(ctx, q, owner, lease, sending, n)
	}
	return d.claim(ctx, claim, func(rec *persist.Record, now time.Time) {
		rec.MaybeSent, rec.FirstSent = true, now
		rec.ExtendSendUntil(now.Add(sending))
	}, q, owner, lease, n)
}

// claim calls take, the Claim or ClaimToSend of the journal in memory, and records the changes for a crash. mark sets in a record the fields set by
// ClaimToSend; nil for Claim. The other parameters are those of Claim. claim returns when the changes are durable, unless a deliberate bug hurries. It waits
// for the end of a Forget: a record about to go must not be claimed.
func (d *disk) claim(ctx context.Context, take claimFunc, mark func(rec *persist.Record, now time.Time), q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.broken == nil && d.forgetting() {
		d.mu.Unlock()
		time.Sleep(time.Millisecond)
		d.mu.Lock()
	}
	if d.broken != nil {
		return nil, time.Time{}, d.broken
	}
	claimed, now, err := take(ctx, q, owner, lease, n)
	for i := range claimed {
		rec := claimed[i].Clone()
		if mark != nil && rec.MarkedByClaim(now) {
			mark(&rec, now)
		}
		d.put(change{rec: rec})
	}
	if mark == nil || d.bug != BugMarkBeforeSync {
		d.settle(d.first + len(d.wait))
	}
	return claimed, now, err
}

// DueTimes implements [persist.DueTimes]. After a failed commit, it returns the commit's error.
func (d *disk) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return nil, d.broken
	}
	return d.mem.DueTimes(ctx, q)
}

// Now implements [persist.Claimer]. After a failed commit, it returns the commit's error.
func (d *disk) Now(ctx context.Context) (time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return time.Time{}, d.broken
	}
	return d.mem.Now(ctx)
}

// Renew implements [persist.Claimer]. The new end of a lease is not durable: after a crash, the lease ends when it would have ended without Renew.
func (d *disk) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return nil, time.Time{}, d.broken
	}
	return d.mem.Renew(ctx, owner, lease, ids)
}
