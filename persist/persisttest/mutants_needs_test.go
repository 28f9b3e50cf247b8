package persisttest_test

import (
	"context"
	"iter"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantNeedsQuery: a listing has what needs anything.
func mutantNeedsQuery() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			q.Needs = ""
			return s.List(ctx, q)
		},
		fails: []string{"needs/renewed"},
	}
}

// mutantNeedsClaim: a claim takes what needs anything.
func mutantNeedsClaim() mutant {
	return mutant{
		claim: func(s *store, ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
			q.Needs = ""
			return s.Claim(ctx, q, owner, lease, n)
		},
		fails: []string{"needs/renewed"},
	}
}

// mutantNeedsDue: one time for all needs of an origin.
func mutantNeedsDue() mutant {
	return mutant{
		due: func(s *store, ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
			all, err := s.DueTimes(ctx, q)
			first := map[string]persist.DueTime{}
			for _, t := range all {
				t.Needs = ""
				if known, ok := first[t.Origin]; !ok || t.At.Before(known.At) {
					first[t.Origin] = t
				}
			}
			all = nil
			for _, t := range first {
				all = append(all, t)
			}
			return all, err
		},
	}
}

// mutantNeedsRenewed: what a record needs stays as it was begun.
func mutantNeedsRenewed() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			got, created, err := s.Begin(ctx, r)
			if created {
				s.remember(got)
			}
			return got, created, err
		},
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if was, ok := s.recall(r.ID); ok && r.Carrier == persist.CarrierSealed {
				r.SealedNeeds = was.SealedNeeds
			}
			return s.Update(ctx, r)
		},
	}
}
