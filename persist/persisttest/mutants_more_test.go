package persisttest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantAliasGiven: keeps the caller's body.
func mutantAliasGiven() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			got, created, err := s.Begin(ctx, r)
			if created && r.PlainHTTP {
				s.remember(r)
			}
			return got, created, err
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if given, kept := s.recall(id); kept && len(r.Body) > 0 && !r.Swept {
				r.Body = slices.Clone(given.Body)
			}
			return r, err
		},
	}
}

// mutantAliasReturned: gives everybody the same slices.
func mutantAliasReturned() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if was, ok := s.recall(id); ok && was.Seq == r.Seq && !r.Swept {
				r.Header = was.Header
			}
			if err == nil && r.PlainHTTP {
				s.remember(r)
			}
			return r, err
		},
	}
}

// mutantAliasUntouched: writes into what it is given.
func mutantAliasUntouched() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			got, created, err := s.Begin(ctx, r)
			if r.PlainHTTP && r.Key == "k" {
				r.Header.Set("X-Journal", "was here")
			}
			return got, created, err
		},
	}
}

// mutantReopenKeeps: a listing forgets the unnamed account.
func mutantReopenKeeps() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if s.opened == 1 || !q.AllAccounts {
				return s.List(ctx, q)
			}
			return filtered(s, ctx, persist.Query{AllAccounts: true}, func(r *persist.Record) bool { return r.Account != "" })
		},
		fails: []string{"due/reopened"},
	}
}

// mutantReopenFinish: the last finish does not last.
func mutantReopenFinish() mutant {
	return mutant{
		finish: func(s *store, ctx context.Context, r persist.Record) error {
			err := s.Finish(ctx, r)
			if err == nil {
				s.mu.Lock()
				s.finished = r.ID
				s.mu.Unlock()
			}
			return err
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.opened > 1 && id == s.finished && r.State == persist.StateConfirmed && strings.HasPrefix(id.Key, "idemp") {
				r.State = persist.StatePending
			}
			return r, err
		},
	}
}

// mutantReopenForgotten: what was forgotten comes back.
func mutantReopenForgotten() mutant {
	return mutant{
		forget: func(s *store, ctx context.Context, r persist.Record) error {
			err := s.Forget(ctx, r)
			if err == nil {
				s.remember(r)
			}
			return err
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			if r, ok := s.recall(id); ok && s.opened > 1 {
				return r, nil
			}
			return s.Get(ctx, id)
		},
	}
}

// mutantReopenSeq: counts from one again.
func mutantReopenSeq() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			r, created, err := s.Begin(ctx, r)
			if created && s.opened > 1 {
				r.Seq = 1
			}
			return r, created, err
		},
		fails: []string{"count/reopened", "late/durable", "reopen/finish"},
	}
}

// mutantReopenGoesOn: does not know revisions from before.
func mutantReopenGoesOn() mutant {
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if s.opened > 1 {
				r = s.current(ctx, r)
			}
			return s.Update(ctx, r)
		},
	}
}

// mutantCloseClosed: reads on.
func mutantCloseClosed() mutant {
	return mutant{
		closed: func(_ *store, method string) bool { return method == "Get" },
	}
}

// mutantCloseUnderWay: acknowledges one more.
func mutantCloseUnderWay() mutant {
	return mutant{
		closed: func(s *store, method string) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			late := method == "Begin" && s.opened == 1 && s.numbers["begin"] > 60 && s.numbers["late"] == 0
			if late {
				s.numbers["late"] = 1
			}
			return late
		},
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			s.mu.Lock()
			s.numbers["begin"]++
			late := s.numbers["late"] == 1
			if late {
				s.numbers["late"] = 2
			}
			s.mu.Unlock()
			if late {
				return r, true, nil
			}
			return s.Begin(ctx, r)
		},
	}
}

func mutantCloseFlush() mutant {
	return mutant{
		flush: func(*store) error { return errors.New("cannot flush") },
		fails: []string{"report/keeps", "wrap/reaches"},
	}
}

// mutantCloseAttach: a value for everybody.
func mutantCloseAttach() mutant {
	return mutant{
		attach: func(_ *store, create func() any) any { return create() },
	}
}

// mutantStressModel: loses count in the long run.
func mutantStressModel() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if strings.HasPrefix(id.Account, "account ") && s.count("get") > 30 {
				r.Sends = 0
			}
			return r, err
		},
	}
}
