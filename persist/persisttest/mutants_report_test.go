package persisttest_test

import (
	"context"
	"iter"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// mutantReportMarks: takes everybody for told.
func mutantReportMarks() mutant {
	return mutant{
		finish: func(s *store, ctx context.Context, r persist.Record) error {
			if r.Key == "marked" {
				r.Unreported = false
			}
			return s.Finish(ctx, r)
		},
	}
}

// mutantReportOthers: wants a record.
func mutantReportOthers() mutant {
	return mutant{
		report: func(s *store, ctx context.Context, id persist.ID) error {
			if _, err := s.Get(ctx, id); err != nil && id.Key == "nobody" {
				return err
			}
			return s.MarkReported(ctx, id)
		},
	}
}

// mutantReportKeeps: loses a large answer on the way.
func mutantReportKeeps() mutant {
	return mutant{
		report: func(s *store, ctx context.Context, id persist.ID) error {
			if err := s.MarkReported(ctx, id); err != nil {
				return err
			}
			if r, err := s.Get(ctx, id); err == nil && r.Answer != nil && len(r.Answer.Body) > 5000 {
				s.remember(r)
			}
			return nil
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if _, lost := s.recall(id); lost && r.Answer != nil {
				r.Answer.Body = nil
			}
			return r, err
		},
	}
}

// mutantReportSweep: removes what has a generated key with its answer.
func mutantReportSweep() mutant {
	return mutant{
		sweep: func(s *store, ctx context.Context, l persist.Limits) (int, error) {
			for r, err := range s.List(ctx, persist.Query{AllAccounts: true, AnyUnresolved: true}) {
				if err == nil && r.Unreported && r.Key == "swept" {
					err = s.MarkReported(ctx, r.ID)
				}
				if err != nil {
					return 0, err
				}
			}
			return s.Sweep(ctx, l)
		},
	}
}

// mutantReportReopen: builds its index of unresolved records without the final
// ones when it is opened.
func mutantReportReopen() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if !q.AnyUnresolved || s.opened == 1 {
				return s.List(ctx, q)
			}
			return filtered(s, ctx, q, func(r *persist.Record) bool { return !r.State.Final() })
		},
		fails: []string{"sweep/told-reopen"},
	}
}

// mutantEnqueueMark: forgets at the next Update that it was enqueued.
func mutantEnqueueMark() mutant {
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if r.Enqueued && s.count("enqueued "+r.Key) == 2 && r.State == persist.StatePending {
				r.Enqueued = false
			}
			return s.Update(ctx, r)
		},
	}
}

// mutantWrapReaches: says that it wraps a journal that it does not write to.
func mutantWrapReaches() mutant {
	other := memory.New()
	return mutant{unwrap: func(*store) persist.Journal { return other }}
}
