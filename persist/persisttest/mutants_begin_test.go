package persisttest_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantBeginCreates: loses a field.
func mutantBeginCreates() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			r.Recipe = ""
			return s.Begin(ctx, r)
		},
		fails: []string{"alias/given", "late/beside", "tx/begin"},
	}
}

// mutantBeginStanding: forgets why a record is held when it is begun again.
func mutantBeginStanding() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			r, created, err := s.Begin(ctx, r)
			if r.State == persist.StateHeld && !created {
				r.State, r.HoldReason = persist.StatePending, ""
			}
			return r, created, err
		},
	}
}

// mutantBeginOneCreates: looks, then creates.
func mutantBeginOneCreates() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			if _, err := s.Get(ctx, r.ID); err == nil {
				return s.Begin(ctx, r)
			}
			for range 20 {
				runtime.Gosched()
			}
			r, _, err := s.Begin(ctx, r)
			return r, err == nil, err
		},
	}
}

// mutantBeginInvalid: refuses, and does not say so.
func mutantBeginInvalid() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			r, created, err := s.Begin(ctx, r)
			if errors.Is(err, persist.ErrInvalid) {
				err = nil
			}
			return r, created, err
		},
	}
}

func mutantBeginCancelled() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			return s.Begin(context.WithoutCancel(ctx), r)
		},
	}
}

// mutantBeginAccounts: accounts that differ in case only are one.
func mutantBeginAccounts() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			if r.Account == "A" {
				r.Account = "a"
			}
			return s.Begin(ctx, r)
		},
	}
}

// mutantBeginAnyBytes: keeps text only.
func mutantBeginAnyBytes() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			r.Target = strings.ToValidUTF8(r.Target, "?")
			return s.Begin(ctx, r)
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			id.Key = strings.ToValidUTF8(id.Key, "?")
			return s.Get(ctx, id)
		},
	}
}

// mutantBeginLarge: cuts what does not fit.
func mutantBeginLarge() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			stored := r
			stored.Body = r.Body[:min(len(r.Body), 1<<20)]
			got, created, err := s.Begin(ctx, stored)
			if created {
				got.Body = r.Body
			}
			return got, created, err
		},
	}
}

// mutantGetNotFound: gives something for every empty key.
func mutantGetNotFound() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			if id.Key == "" {
				return persist.Record{}, nil
			}
			return s.Get(ctx, id)
		},
	}
}

// mutantGetProbe: a look leaves a record.
func mutantGetProbe() mutant {
	return mutant{
		probe: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			if err := ctx.Err(); err != nil {
				return persist.Record{}, err
			}
			rec, err := s.Get(ctx, id)
			if errors.Is(err, persist.ErrNotFound) {
				_, _, begun := s.Begin(ctx, persist.Record{
					ID: id, Method: "POST", Origin: "https://api.test:443", WireKey: id.Key, Fingerprint: make([]byte, 32), Created: time.Now(),
				})
				return rec, errors.Join(err, begun)
			}
			return rec, err
		},
	}
}

// mutantBeginTrace: writes the trace again with each change.
func mutantBeginTrace() mutant {
	cleared := false
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			cleared = cleared || r.Key == "traced" && r.Trace == ""
			return s.Update(ctx, r)
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if cleared && id.Key == "traced" {
				r.Trace = ""
			}
			return r, err
		},
	}
}
