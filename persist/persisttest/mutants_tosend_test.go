package persisttest_test

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantClaimMarks: marks what it returns, too, so that it looks as if an earlier process had sent it.
func mutantClaimMarks() mutant {
	return mutant{
		fails: []string{"claim/marks-in-time"},
		toSend: func(s *store, ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
			got, now, err := s.ClaimToSend(ctx, q, owner, lease, sending, n)
			for i := range got {
				if got[i].MarkedByClaim(now) {
					got[i].MaybeSent, got[i].FirstSent = true, now
				}
			}
			return got, now, err
		},
	}
}

// mutantClaimMarksOnly: marks what is not protected, too.
func mutantClaimMarksOnly() mutant {
	return mutant{
		toSend: func(s *store, ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
			got, now, err := s.ClaimToSend(ctx, q, owner, lease, sending, n)
			for _, r := range got {
				if !r.Protected {
					r.MaybeSent, r.FirstSent = true, now
					_, _ = s.Update(ctx, r)
				}
			}
			return got, now, err
		},
	}
}

// mutantClaimMarksInTime: marks what may not be sent any more, too.
func mutantClaimMarksInTime() mutant {
	return mutant{
		toSend: func(s *store, ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
			got, now, err := s.ClaimToSend(ctx, q, owner, lease, sending, n)
			for _, r := range got {
				if !r.SendBefore.IsZero() && !now.Before(r.SendBefore) {
					r.MaybeSent, r.FirstSent = true, now
					_, _ = s.Update(ctx, r)
				}
			}
			return got, now, err
		},
	}
}

// mutantClaimMarksLast: keeps its marks in memory.
func mutantClaimMarksLast() mutant {
	return mutant{
		toSend: func(s *store, ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
			got, now, err := s.ClaimToSend(ctx, q, owner, lease, sending, n)
			for _, r := range got {
				s.remember(r)
			}
			return got, now, err
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if before, claimed := s.recall(id); claimed && s.opened > 1 && r.Revision == before.Revision {
				r.MaybeSent, r.FirstSent, r.SendUntil = before.MaybeSent, before.FirstSent, before.SendUntil
			}
			return r, err
		},
	}
}
