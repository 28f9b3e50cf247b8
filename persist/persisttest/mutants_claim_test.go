package persisttest_test

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantClaimTakes: one more than asked for.
func mutantClaimTakes() mutant {
	return mutant{
		claim: func(s *store, ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
			return s.Claim(ctx, q, owner, lease, n+1)
		},
		fails: []string{"claim/origins"},
	}
}

// mutantClaimDrives: counts a drive only once.
func mutantClaimDrives() mutant {
	return mutant{
		claim: func(s *store, ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
			got, now, err := s.Claim(ctx, q, owner, lease, n)
			for i := range got {
				if got[i].Drives == 8 {
					got[i].Drives = 7
					got[i], err = s.Update(ctx, got[i])
				}
			}
			return got, now, err
		},
	}
}

// mutantClaimDeserted: says nothing of who lost its lease.
func mutantClaimDeserted() mutant {
	return mutant{
		claim: func(s *store, ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
			got, now, err := s.Claim(ctx, q, owner, lease, n)
			for i := range got {
				if !got[i].DesertedUntil.IsZero() {
					got[i].DesertedUntil = time.Time{}
					got[i], err = s.Update(ctx, got[i])
				}
			}
			return got, now, err
		},
	}
}

// mutantClaimDue: what is due is what the worker says, by its own clock.
func mutantClaimDue() mutant {
	return mutant{
		claim: func(s *store, ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
			claimed, now, err := s.Claim(ctx, q, owner, lease, n)
			q.States = []persist.State{persist.StatePending}
			for r := range s.List(ctx, q) {
				if !q.DueBy.IsZero() && r.NextAttempt.After(now) && len(claimed) < n {
					r.LeaseOwner, r.LeaseUntil = owner, now.Add(lease)
					r.Drives++
					r, err = s.Update(ctx, r)
					claimed = append(claimed, r)
				}
			}
			return claimed, now, err
		},
	}
}

// mutantClaimLeased: leases end early.
func mutantClaimLeased() mutant {
	return mutant{
		claim: func(s *store, ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
			now, err := s.Now(ctx)
			if err != nil {
				return nil, now, err
			}
			for r := range s.List(ctx, q) {
				if !r.State.Final() && r.LeaseOwner != "" && r.LeaseUntil.Sub(now) < 30*time.Millisecond {
					r.LeaseOwner, r.LeaseUntil = "", time.Time{}
					_, _ = s.Update(ctx, r)
				}
			}
			return s.Claim(ctx, q, owner, lease, n)
		},
		fails: []string{"claim/deserted"},
	}
}

// mutantClaimDisjoint: looks, then takes.
func mutantClaimDisjoint() mutant {
	return mutant{
		claim: func(s *store, ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
			now, err := s.Now(ctx)
			if q.States = []persist.State{persist.StatePending}; q.DueBy.IsZero() || q.DueBy.After(now) {
				q.DueBy = now
			}
			var got []persist.Record
			for r := range s.List(ctx, q) {
				if len(got) < n && !r.Leased("", now) {
					got = append(got, r)
				}
			}
			for range 50 {
				runtime.Gosched()
			}
			for i := range got {
				r := s.current(ctx, got[i])
				r.TakeLease(owner, now.Add(lease))
				r.Drives++
				got[i], _ = s.Update(ctx, r)
				got[i].ID = r.ID
			}
			return got, now, err
		},
	}
}

// mutantClaimFence: whoever had a lease may still write, at the old revision.
func mutantClaimFence() mutant {
	return mutant{
		finish: func(s *store, ctx context.Context, r persist.Record) error {
			if now, err := s.Get(ctx, r.ID); err == nil && r.LeaseOwner == "frozen" && now.LeaseOwner == "next" {
				r = s.current(ctx, r)
			}
			return s.Finish(ctx, r)
		},
	}
}

// mutantClaimRenew: says of every record that it is held.
func mutantClaimRenew() mutant {
	return mutant{
		renew: func(s *store, ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
			_, now, err := s.Renew(ctx, owner, lease, ids)
			return slices.Clone(ids), now, err
		},
	}
}

// mutantClaimOrigins: forgets that the records of another account are none of this one's business.
func mutantClaimOrigins() mutant {
	return mutant{
		due: func(s *store, ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
			q.AllAccounts = true
			return s.DueTimes(ctx, q)
		},
		fails: []string{"assign/due", "due/follows", "due/reopened"},
	}
}

// mutantDueFollows: an Update does not say when what it puts off is due.
func mutantDueFollows() mutant {
	return mutant{
		due: func(s *store, ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
			all, err := s.DueTimes(ctx, q)
			for i := range all {
				for r := range s.List(ctx, persist.Query{AllAccounts: true, Origin: all[i].Origin}) {
					if begun, _ := s.recall(r.ID); r.Revision > 1 && r.State == persist.StatePending && begun.NextAttempt.Before(all[i].At) {
						all[i].At = begun.NextAttempt
					}
				}
			}
			return all, err
		},
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			got, created, err := s.Begin(ctx, r)
			if created {
				s.remember(got)
			}
			return got, created, err
		},
		fails: []string{"assign/due", "due/reopened"},
	}
}

// mutantDueNext: what is due hides what falls due later.
func mutantDueNext() mutant {
	return mutant{
		alone: true,
		due: func(s *store, ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
			all, err := s.DueTimes(ctx, q)
			for i := range all {
				if !all[i].At.After(q.DueBy) {
					all[i].Next = time.Time{}
				}
			}
			return all, err
		},
	}
}

// mutantDueReopened: what was there before a restart is not in the index.
func mutantDueReopened() mutant {
	return mutant{
		due: func(s *store, ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
			if s.opened > 1 {
				return nil, nil
			}
			return s.DueTimes(ctx, q)
		},
	}
}
