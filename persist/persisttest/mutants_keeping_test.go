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
		fails: []string{"keeping/answer", "keeping/key-reopen", "keeping/lengthened", "keeping/unsaid", "keeping/evidence", "keeping/links", "keeping/links-reopen"},
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

// mutantKeepingEvidence: its sweeps go by what a record had when its end was written, without the evidence since.
func mutantKeepingEvidence() mutant {
	return mutant{
		amend: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			evidence := r.Evidence
			if r.ReplacedBy == "" {
				r.Evidence = nil
			}
			got, err := s.Amend(ctx, r)
			got.Evidence = evidence
			return got, err
		},
		fails: []string{"keeping/links", "keeping/links-reopen", "amend/held", "request/amend"},
	}
}

// mutantKeepingLinks: its sweeps forget a generated key that another operation has replaced.
func mutantKeepingLinks() mutant {
	return mutant{
		amend: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			by := r.ReplacedBy
			if r.Key == "replaced" {
				r.ReplacedBy = ""
			}
			got, err := s.Amend(ctx, r)
			got.ReplacedBy = by
			return got, err
		},
		fails: []string{"keeping/evidence", "keeping/links-reopen"},
	}
}

// mutantKeepingLinksReopen: once it is opened again, it has lost the generated keys in whose place another operation stands.
func mutantKeepingLinksReopen() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			if s.opened > 2 && id.Key == "replaced" {
				return persist.Record{}, persist.ErrNotFound
			}
			return s.Get(ctx, id)
		},
	}
}
