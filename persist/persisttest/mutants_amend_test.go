package persisttest_test

import (
	"context"
	"iter"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantAmendEnded: loses the answer.
func mutantAmendEnded() mutant {
	return mutant{
		amend: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			answer := r.Answer
			if r.Key == "finished" {
				r.Answer = nil
			}
			got, err := s.Amend(ctx, r)
			got.Answer = answer
			return got, err
		},
		fails: []string{"amend/reopen"},
	}
}

// mutantAmendHeld: says that it is held, and leaves it as it is.
func mutantAmendHeld() mutant {
	return mutant{
		amend: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if r.Key == "chosen" && r.State == persist.StateHeld {
				r.Revision++
				return r, nil
			}
			return s.Amend(ctx, r)
		},
	}
}

// mutantAmendRefuses: takes the latest revision for the one that was read.
func mutantAmendRefuses() mutant {
	return mutant{
		amend: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if r.Key == "refused" {
				r = s.current(ctx, r)
			}
			return s.Amend(ctx, r)
		},
	}
}

// mutantAmendOnce: says of two calls at once that they have written.
func mutantAmendOnce() mutant {
	return mutant{
		amend: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if r.Key != "3" {
				return s.Amend(ctx, r)
			}
			got, err := s.Amend(ctx, r)
			if err != nil && s.count("amended") == 1 {
				r.Revision++
				return r, nil
			}
			return got, err
		},
	}
}

// mutantAmendReopen: loses the key of the successor when it is opened again.
func mutantAmendReopen() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			return func(yield func(persist.Record, error) bool) {
				for r, err := range s.List(ctx, q) {
					if s.opened > 1 {
						r.ReplacedBy = ""
					}
					if !yield(r, err) {
						return
					}
				}
			}
		},
	}
}
