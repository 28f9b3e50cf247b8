package persisttest_test

import (
	"context"
	"runtime"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// limited sweeps with other limits.
func limited(change func(*persist.Limits)) func(*store, context.Context, persist.Limits) (int, error) {
	return func(s *store, ctx context.Context, l persist.Limits) (int, error) {
		change(&l)
		return s.Sweep(ctx, l)
	}
}

// mutantSweepAnswers: a moment late.
func mutantSweepAnswers() mutant {
	return mutant{
		sweep: limited(func(l *persist.Limits) {
			if l.Prune && l.KeepAnswer > 0 {
				l.KeepAnswer++
			}
		}),
		fails: []string{"sweep/generated", "sweep/told", "sweep/keep-key"},
	}
}

// mutantSweepTombstones: keeps keys for ten years.
func mutantSweepTombstones() mutant {
	return mutant{
		sweep: limited(func(l *persist.Limits) {
			if l.KeepKey == 0 {
				l.KeepKey = 10 * 365 * 24 * time.Hour
			}
		}),
		fails: []string{"sweep/told"},
	}
}

// mutantSweepKeptFields: its tombstones forget the kept fields.
func mutantSweepKeptFields() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if r.Swept {
				r.KeptFields = nil
			}
			return r, err
		},
		fails: []string{"sweep/tombstones", "reopen/forgotten", "amend/reopen", "request/reopen"},
	}
}

// mutantSweepGenerated: does not know which keys are generated.
func mutantSweepGenerated() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			generated := r.Generated
			if generated && r.Key == "k" && r.Account == "a" && r.Carrier == "header" && r.State == persist.StatePending {
				r.Generated = false
			}
			got, created, err := s.Begin(ctx, r)
			if created {
				got.Generated = generated
			}
			return got, created, err
		},
	}
}

// mutantSweepTold: forgets that a key was told, where its end was, too.
func mutantSweepTold() mutant {
	return mutant{
		finish: func(s *store, ctx context.Context, r persist.Record) error {
			r.KeyTold = r.KeyTold && (r.Unreported || !r.Generated)
			return s.Finish(ctx, r)
		},
		fails: []string{"sweep/told-reopen"},
	}
}

// mutantSweepToldUnreported: forgets that a key was told, where its end was not.
func mutantSweepToldUnreported() mutant {
	return mutant{
		finish: func(s *store, ctx context.Context, r persist.Record) error {
			r.KeyTold = r.KeyTold && !r.Unreported
			return s.Finish(ctx, r)
		},
		fails: []string{"sweep/told-reopen"},
	}
}

// mutantSweepToldReopen: loads no tombstone of a key that was told.
func mutantSweepToldReopen() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			if s.opened > 1 && id.Key == "told and swept" {
				return persist.Record{}, persist.ErrNotFound
			}
			return s.Get(ctx, id)
		},
	}
}

// mutantSweepKeepKey: keeps keys for ever.
func mutantSweepKeepKey() mutant {
	return mutant{
		sweep: limited(func(l *persist.Limits) { l.KeepKey = min(l.KeepKey, 0) }),
		fails: []string{"sweep/told", "sweep/told-unreported", "keeping/links"},
	}
}

// mutantSweepWindow: keeps answers for a minute.
func mutantSweepWindow() mutant {
	return mutant{
		sweep: limited(func(l *persist.Limits) {
			if !l.Prune && l.KeepAnswer == 0 && l.KeepKey == 0 {
				l.Prune, l.KeepAnswer = true, time.Minute
			}
		}),
		fails: []string{"keeping/answer", "keeping/lengthened", "keeping/unsaid", "request/end", "request/kept", "request/sweep"},
	}
}

// mutantSweepUnfinished: clears up.
func mutantSweepUnfinished() mutant {
	return mutant{
		sweep: func(s *store, ctx context.Context, l persist.Limits) (int, error) {
			n, err := s.Sweep(ctx, l)
			if !l.Now.After(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)) {
				return n, err
			}
			for r := range s.List(ctx, persist.Query{AllAccounts: true}) {
				if !r.State.Final() && s.Forget(ctx, r) == nil {
					n++
				}
			}
			return n, err
		},
	}
}

// mutantSweepMax: knows no end.
func mutantSweepMax() mutant {
	return mutant{
		sweep: limited(func(l *persist.Limits) { l.Max = 0 }),
	}
}

// mutantSweepNow: the zero time is long ago.
func mutantSweepNow() mutant {
	return mutant{
		sweep: limited(func(l *persist.Limits) {
			if l.Now.IsZero() {
				l.Now = time.Unix(0, 0)
			}
		}),
	}
}

// mutantSweepLarge: leaves a part of what was large.
func mutantSweepLarge() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			large := len(r.Body) > 200<<10
			r, created, err := s.Begin(ctx, r)
			if large {
				s.remember(r)
			}
			return r, created, err
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if was, large := s.recall(id); large && r.Swept {
				r.Body = was.Body
			}
			return r, err
		},
	}
}

// mutantSweepConcurrent: takes records out, and puts them back as tombstones.
func mutantSweepConcurrent() mutant {
	return mutant{
		sweep: func(s *store, ctx context.Context, l persist.Limits) (int, error) {
			s.busy.Add(1)
			defer s.busy.Add(-1)
			for range 50 {
				runtime.Gosched()
			}
			return s.Sweep(ctx, l)
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			if s.busy.Load() > 0 {
				return persist.Record{}, persist.ErrNotFound
			}
			return s.Get(ctx, id)
		},
	}
}
