package persisttest_test

import (
	"context"
	"iter"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantResultMarks: takes a mark of any revision.
func mutantResultMarks() mutant {
	return mutant{
		deliver: func(s *store, ctx context.Context, id persist.ID, revision uint64) (bool, error) {
			now, _ := s.Get(ctx, id)
			return s.MarkDelivered(ctx, id, max(revision, now.Revision))
		},
	}
}

// mutantResultPostpone: postpones a result at any revision.
func mutantResultPostpone() mutant {
	return mutant{
		fails: []string{"results/postpone together"},
		postpone: func(s *store, ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
			now, _ := s.Get(ctx, id)
			return s.Postpone(ctx, id, max(revision, now.Revision), from)
		},
	}
}

// mutantResultPostponeTogether: takes another's change of an end for its own.
func mutantResultPostponeTogether() mutant {
	return mutant{
		postpone: func(s *store, ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
			ok, err := s.Postpone(ctx, id, revision, from)
			now, _ := s.Get(ctx, id)
			return ok || now.State.Final() && now.Owed() && now.Revision == revision+1, err
		},
	}
}

// mutantResultSweep: takes for delivered what is old.
func mutantResultSweep() mutant {
	return mutant{
		sweep: func(s *store, ctx context.Context, l persist.Limits) (int, error) {
			for rec := range s.List(ctx, persist.Query{AllAccounts: true, Owed: true}) {
				_, _ = s.MarkDelivered(ctx, rec.ID, rec.Revision)
			}
			return s.Sweep(ctx, l)
		},
	}
}

// mutantResultReopen: forgets in the next process what is owed.
func mutantResultReopen() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if !q.Owed || s.opened == 1 {
				return s.List(ctx, q)
			}
			return filtered(s, ctx, q, func(r *persist.Record) bool { return !r.State.Final() })
		},
	}
}
