package persisttest_test

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Count implements [persist.Counter].
func (o *opening) Count(ctx context.Context) (persist.Counts, error) {
	if err := o.closed("Count"); err != nil {
		return persist.Counts{}, err
	}
	if o.s.m.count != nil {
		return o.s.m.count(o.s, ctx)
	}
	return o.s.Count(ctx)
}

// Count implements [persist.Counter].
func (s single) Count(ctx context.Context) (persist.Counts, error) { return s.opening.Count(ctx) }

// counted returns how often count was called.
func (s *store) counted(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbers[what]
}

// mutantCountFollows: leaves out the reasons of later versions.
func mutantCountFollows() mutant {
	return mutant{
		fails: []string{"count/reopened"},
		count: func(s *store, ctx context.Context) (persist.Counts, error) {
			c, err := s.Count(ctx)
			delete(c.Held, "a later reason")
			return c, err
		},
	}
}

// mutantCountEnds: takes abandoned records for pending ones.
func mutantCountEnds() mutant {
	return mutant{
		count: func(s *store, ctx context.Context) (persist.Counts, error) {
			c, err := s.Count(ctx)
			for range s.List(ctx, persist.Query{AllAccounts: true, States: []persist.State{persist.StateAbandoned}}) {
				c.Pending++
			}
			return c, err
		},
	}
}

// mutantCountAssigned: counts an assigned record under both accounts.
func mutantCountAssigned() mutant {
	return mutant{
		assign: func(s *store, ctx context.Context, r persist.Record, account string) (persist.Record, error) {
			s.count("assigned")
			return s.Assign(ctx, r, account)
		},
		count: func(s *store, ctx context.Context) (persist.Counts, error) {
			c, err := s.Count(ctx)
			c.Pending += s.counted("assigned")
			return c, err
		},
	}
}

// mutantCountOwed: leaves out ends that somebody has taken for their delivery.
func mutantCountOwed() mutant {
	return mutant{
		postpone: func(s *store, ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
			s.count("taken")
			return s.Postpone(ctx, id, revision, from)
		},
		count: func(s *store, ctx context.Context) (persist.Counts, error) {
			c, err := s.Count(ctx)
			c.Owed = max(0, c.Owed-s.counted("taken"))
			return c, err
		},
	}
}

// mutantCountBeside: counts what is begun during the call, and not what ends.
func mutantCountBeside() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			s.count("begun")
			return s.Begin(ctx, r)
		},
		count: func(s *store, ctx context.Context) (persist.Counts, error) {
			c, err := s.Count(ctx)
			before := s.counted("begun")
			time.Sleep(time.Millisecond)
			c.Pending += s.counted("begun") - before
			return c, err
		},
	}
}

// mutantCountReopened: counts in the next process only what is pending.
func mutantCountReopened() mutant {
	return mutant{
		count: func(s *store, ctx context.Context) (persist.Counts, error) {
			c, err := s.Count(ctx)
			if s.opened > 1 {
				c.Held = nil
			}
			return c, err
		},
	}
}
