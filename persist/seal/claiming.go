package seal

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// claiming is a journal over a persist.Claimer.
type claiming struct {
	journal
	below persist.Claimer
}

// Now implements [persist.Claimer], by the clock of the journal below.
func (j *claiming) Now(ctx context.Context) (time.Time, error) { return j.below.Now(ctx) }

// Claim implements [persist.Claimer]: it claims due records in the journal below, and decrypts them. A record that cannot be unsealed is given back at once,
// as it was, and left out; its error is returned only if nothing else was claimed. One query can need several at the journal below: each key encrypts what it
// selects by differently. A query for needs (the requirements on a client) does not select such records, since the ids of their keys are among the needs.
func (j *claiming) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) (claimed []persist.Record, now time.Time, err error) {
	var failed error
	for _, below := range j.queries(q) {
		sealed, at, err := j.below.Claim(ctx, below, owner, lease, n-len(claimed))
		if err != nil {
			return claimed, at, err
		}
		now = at
		for _, rec := range sealed {
			opened, err := j.s.Unseal(rec)
			if err != nil {
				failed = err
				rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
				_, _ = j.Journal.Update(context.WithoutCancel(ctx), rec) // else its lease ends by itself
				continue
			}
			claimed = append(claimed, opened)
		}
	}
	if len(claimed) == 0 {
		return nil, now, failed
	}
	return claimed, now, nil
}

// Renew implements [persist.Claimer]: it extends the leases of owner in the journal below, and returns the IDs of the records that owner still has. The
// journal below has other IDs, as the key in an ID can be hashed: they are translated there and back.
func (j *claiming) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) (held []persist.ID, now time.Time, err error) {
	known := make(map[persist.ID]persist.ID, len(ids))
	stored := make([]persist.ID, len(ids))
	for i, id := range ids {
		stored[i] = j.s.StoredID(id)
		known[stored[i]] = id
	}
	stored, now, err = j.below.Renew(ctx, owner, lease, stored)
	for _, id := range stored {
		held = append(held, known[id])
	}
	return held, now, err
}
