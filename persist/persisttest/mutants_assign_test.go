package persisttest_test

import (
	"bytes"
	"context"

	"github.com/oncehttp/oncehttp/persist"
)

// assigning is a mutant whose Assign is wrong for records of one key.
func assigning(key string, wrong func(s *store, ctx context.Context, r persist.Record, account string) (persist.Record, error)) mutant {
	return mutant{
		assign: func(s *store, ctx context.Context, r persist.Record, account string) (persist.Record, error) {
			if r.Key == key {
				return wrong(s, ctx, r, account)
			}
			return s.Assign(ctx, r, account)
		},
	}
}

// mutantAssignMoves: loses what was done last.
func mutantAssignMoves() mutant {
	m := assigning("changed", func(s *store, ctx context.Context, r persist.Record, account string) (persist.Record, error) {
		lost := r
		lost.History = nil
		got, err := s.Assign(ctx, lost, account)
		got.History = r.History
		return got, err
	})
	m.fails = []string{"assign/reopen"}
	return m
}

// mutantAssignFrees: leaves the record where it was, too.
func mutantAssignFrees() mutant {
	return assigning("freed", func(s *store, ctx context.Context, r persist.Record, account string) (persist.Record, error) {
		got, err := s.Assign(ctx, r, account)
		if err == nil {
			_, _, err = s.Begin(ctx, r)
		}
		return got, err
	})
}

// mutantAssignRefuses: takes the latest revision for the one that was read.
func mutantAssignRefuses() mutant {
	return assigning("refused", func(s *store, ctx context.Context, r persist.Record, account string) (persist.Record, error) {
		if now, err := s.Get(ctx, r.ID); err == nil {
			r.Revision = now.Revision
		}
		return s.Assign(ctx, r, account)
	})
}

// mutantAssignDue: forgets when it is due.
func mutantAssignDue() mutant {
	return mutant{
		assign: func(s *store, ctx context.Context, r persist.Record, account string) (persist.Record, error) {
			got, err := s.Assign(ctx, r, account)
			if r.Key == "due" {
				s.remember(got)
			}
			return got, err
		},
		due: func(s *store, ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
			times, err := s.DueTimes(ctx, q)
			if _, lost := s.recall(persist.ID{Account: q.Account, Key: "due"}); lost {
				times = nil
			}
			return times, err
		},
	}
}

// mutantAssignOnce: copies and removes in two steps.
func mutantAssignOnce() mutant {
	return assigning("3", func(s *store, ctx context.Context, r persist.Record, account string) (persist.Record, error) {
		copied := r
		copied.Account = account
		got, _, err := s.Begin(ctx, copied)
		if err == nil {
			_ = s.Forget(ctx, r)
		}
		return got, err
	})
}

// mutantAssignReopen: keeps in memory only where a record went.
func mutantAssignReopen() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			if s.opened > 1 && id.Account == "shop" && id.Key == "full" {
				id.Account = ""
			}
			return s.Get(ctx, id)
		},
	}
}

// mutantSecretSame: makes another secret once there is a record.
func mutantSecretSame() mutant {
	return mutant{
		secret: func(s *store, ctx context.Context) ([]byte, error) {
			if _, err := s.Get(ctx, persist.ID{Account: "a", Key: "in between"}); err == nil {
				return bytes.Repeat([]byte{1}, persist.SecretSize), nil
			}
			return s.Secret(ctx)
		},
	}
}

// mutantSecretReopen: makes another secret each time it is opened.
func mutantSecretReopen() mutant {
	return mutant{
		secret: func(s *store, _ context.Context) ([]byte, error) {
			return bytes.Repeat([]byte{byte(s.opened)}, persist.SecretSize), nil
		},
	}
}
