package persisttest_test

import (
	"context"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantEraseEnded: keeps the fields that were kept for an audit.
func mutantEraseEnded() mutant {
	return mutant{
		erase: func(s *store, ctx context.Context, r persist.Record, fingerprint []byte) (persist.Record, error) {
			before, err := s.Get(ctx, r.ID)
			if err != nil {
				return persist.Record{}, err
			}
			r.KeptFields = before.KeptFields
			got, err := s.Erase(ctx, r, fingerprint)
			got.KeptFields = nil
			return got, err
		},
		fails: []string{"erase/reopen"},
	}
}

// mutantEraseRefuses: erases what nobody was told of.
func mutantEraseRefuses() mutant {
	return mutant{
		erase: func(s *store, ctx context.Context, r persist.Record, fingerprint []byte) (persist.Record, error) {
			if r.Key == "unreported" {
				_ = s.MarkReported(ctx, r.ID)
				r.Revision = s.current(ctx, r).Revision
			}
			return s.Erase(ctx, r, fingerprint)
		},
	}
}

// mutantEraseScoped: does not find an erased record by the account that it had inside another.
func mutantEraseScoped() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if r.Erased && strings.Contains(id.Account, "|") {
				return persist.Record{}, persist.ErrNotFound
			}
			return r, err
		},
	}
}

// mutantEraseAgain: gives the ID that an erased record had to another record.
func mutantEraseAgain() mutant {
	return mutant{
		assign: func(s *store, ctx context.Context, r persist.Record, account string) (persist.Record, error) {
			if r.Key == "again" {
				r.Account = account
				return r, nil
			}
			return s.Assign(ctx, r, account)
		},
	}
}

// mutantEraseOnce: says that it has erased, and leaves the record as it is.
func mutantEraseOnce() mutant {
	return mutant{
		erase: func(s *store, ctx context.Context, r persist.Record, fingerprint []byte) (persist.Record, error) {
			if r.Key == "once 3" {
				r.Revision++
				return r, nil
			}
			return s.Erase(ctx, r, fingerprint)
		},
	}
}

// mutantEraseReopen: forgets, once it is opened again, that a record was erased.
func mutantEraseReopen() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if s.opened > 1 {
				r.Erased = false
			}
			return r, err
		},
	}
}
