package persisttest_test

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantRequestEnd: an end writes its record over without what Begin has frozen, but for the ID.
func mutantRequestEnd() mutant {
	return mutant{
		finish: func(s *store, ctx context.Context, r persist.Record) error {
			if r.RequestDropped {
				r.KeptFields, r.Target = nil, "/"
			}
			return s.Finish(ctx, r)
		},
		fails: []string{"request/amend", "request/kept", "request/reopen"},
	}
}

// mutantRequestReopen: once it is opened again, an answer is lost with the request.
func mutantRequestReopen() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if s.opened > 1 && r.RequestDropped {
				r.Answer = nil
			}
			return r, err
		},
	}
}

// mutantRequestKept: it forgets how long a request is kept, and keeps it with the answer.
func mutantRequestKept() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			if r.KeepRequest == persist.RequestUntilEnd && r.State == persist.StatePending {
				r.KeepRequest = persist.RequestWithAnswer
			}
			return s.Begin(ctx, r)
		},
		fails: []string{"request/amend"},
	}
}

// mutantRequestSweep: a sweep never takes a request alone.
func mutantRequestSweep() mutant {
	return mutant{
		sweep: func(s *store, ctx context.Context, l persist.Limits) (int, error) {
			if l.Now.Equal(time.Date(2026, 1, 3, 3, 4, 6, 678_901_234, time.UTC)) { // the end of the window in that case
				return 0, nil
			}
			return s.Sweep(ctx, l)
		},
	}
}

// mutantRequestAmend: an Amend keeps no mark that the request is gone.
func mutantRequestAmend() mutant {
	return mutant{
		amend: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			r.RequestDropped = false
			return s.Amend(ctx, r)
		},
	}
}
