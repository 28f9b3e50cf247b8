package persisttest_test

import (
	"context"
	"iter"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantListFollows: a record becomes visible to listings only after a later one was listed.
func mutantListFollows() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if q.Account != "follows" {
				return s.List(ctx, q)
			}
			return func(yield func(persist.Record, error) bool) {
				for r, err := range s.List(ctx, q) {
					if err == nil && r.Seq%7 == 3 && s.count("seen "+r.Key) == 1 {
						continue
					}
					if !yield(r, err) {
						return
					}
				}
			}
		},
	}
}

// mutantListLate: a record that is committed late has the number of its begin.
func mutantListLate() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			return func(yield func(persist.Record, error) bool) {
				for r, err := range s.List(ctx, q) {
					if r.ID == (persist.ID{Account: "late", Key: "late"}) && q.After > 0 {
						continue
					}
					if !yield(r, err) {
						return
					}
				}
			}
		},
	}
}
