package persisttest_test

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantTextGone: a listing by key and state does not find a key without its text.
func mutantTextGone() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			return func(yield func(persist.Record, error) bool) {
				for r, err := range s.List(ctx, q) {
					if r.Erased && q.Key != "" && len(q.States) > 0 {
						continue
					}
					if !yield(r, err) {
						return
					}
				}
			}
		},
		fails: []string{"text/needed", "text/pruned", "text/reopen"},
	}
}

// mutantTextNeeded: takes the text out of a record with kept fields.
func mutantTextNeeded() mutant {
	return mutant{
		sweep: func(s *store, ctx context.Context, l persist.Limits) (int, error) {
			n, err := s.Sweep(ctx, l)
			if r, missing := s.Get(ctx, persist.ID{Account: "a", Key: "kept fields"}); missing == nil && r.Swept && !r.Erased {
				was := r.Fingerprint
				secret, _ := s.Secret(ctx)
				r.Erase(secret)
				_, _ = s.Erase(ctx, r, was)
			}
			return n, err
		},
	}
}

// mutantTextPruned: a prune of texts takes the keys.
func mutantTextPruned() mutant {
	return mutant{
		sweep: limited(func(l *persist.Limits) {
			if l.Prune && l.KeepText != 0 {
				l.KeepKey = cmp.Or(l.KeepKey, l.KeepText)
			}
		}),
		fails: []string{"text/needed"},
	}
}

// mutantTextReopen: once it is opened again, it does not find a key without its text.
func mutantTextReopen() mutant {
	return mutant{
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if r.Erased && s.opened > 2 {
				return persist.Record{}, persist.ErrNotFound
			}
			return r, err
		},
	}
}

// mutantTextBegin: begins a key without its text anew.
func mutantTextBegin() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			existing, created, err := s.Begin(ctx, r)
			if existing.Erased && strings.HasPrefix(r.Key, "raced") {
				r.Revision = 1
				return r, true, nil
			}
			return existing, created, err
		},
	}
}
