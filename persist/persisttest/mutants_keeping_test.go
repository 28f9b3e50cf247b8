package persisttest_test

import (
	"context"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantKeepingAnswer: a sweep goes by the sweeper's Config where that says for how long answers are kept.
func mutantKeepingAnswer() mutant {
	return mutant{
		sweep: limited(func(l *persist.Limits) {
			if !l.Prune && l.KeepAnswer != 0 {
				l.Prune, l.KeepKey = true, 0
			}
		}),
		fails: []string{"keeping/lengthened", "keeping/unsaid"},
	}
}

// mutantKeepingKey: a sweep goes by the sweeper's Config where that says for how long keys are kept.
func mutantKeepingKey() mutant {
	return mutant{
		sweep: limited(func(l *persist.Limits) {
			if !l.Prune && l.KeepKey != 0 {
				l.Prune, l.KeepAnswer = true, 0
			}
		}),
		fails: []string{"keeping/answer", "keeping/key-reopen", "keeping/lengthened", "keeping/unsaid"},
	}
}

// mutantKeepingKeyReopen: once it is opened again, it keeps keys for ever.
func mutantKeepingKeyReopen() mutant {
	return mutant{
		sweep: func(s *store, ctx context.Context, l persist.Limits) (int, error) {
			if s.opened > 2 && !l.Prune {
				return 0, nil
			}
			return s.Sweep(ctx, l)
		},
	}
}

// mutantKeepingLengthened: an end does not change how long a record is kept.
func mutantKeepingLengthened() mutant {
	return mutant{
		finish: func(s *store, ctx context.Context, r persist.Record) error {
			if was, err := s.Get(ctx, r.ID); err == nil {
				r.KeepAnswer, r.KeepKey = was.KeepAnswer, was.KeepKey
			}
			return s.Finish(ctx, r)
		},
	}
}

// mutantKeepingUnsaid: a record that says nothing is kept for as long as the sweeper says.
func mutantKeepingUnsaid() mutant {
	return mutant{
		sweep: limited(func(l *persist.Limits) {
			if !l.Prune && l.KeepAnswer > 0 {
				l.KeepAnswer = 0
			}
		}),
	}
}
