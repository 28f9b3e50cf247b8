package sim

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the methods of the simulated journal for processes sharing it: claims, leases and due times.

// claimFunc is a Claim or a ClaimToSend.
type claimFunc func(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error)

// Claim implements [persist.Claimer]. A lost lease would cost a send at most.
func (d *disk) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	return d.claim(ctx, d.mem.Claim, nil, q, owner, lease, n)
}

// ClaimToSend implements [persist.SendClaimer]. Its marks are durable when it returns.
func (d *disk) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	claim := func(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
		return d.mem.ClaimToSend(ctx, q, owner, lease, sending, n)
	}
	return d.claim(ctx, claim, func(rec *persist.Record, now time.Time) {
		rec.MaybeSent, rec.FirstSent = true, now
		rec.ExtendSendUntil(now.Add(sending))
	}, q, owner, lease, n)
}

// claim makes one of the two claims of the journal in memory; mark is not nil for the marking one.
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

// DueTimes implements [persist.DueTimes].
func (d *disk) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return nil, d.broken
	}
	return d.mem.DueTimes(ctx, q)
}

// Now implements [persist.Claimer].
func (d *disk) Now(ctx context.Context) (time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return time.Time{}, d.broken
	}
	return d.mem.Now(ctx)
}

// Renew implements [persist.Claimer]. A crash loses its effect.
func (d *disk) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return nil, time.Time{}, d.broken
	}
	return d.mem.Renew(ctx, owner, lease, ids)
}
