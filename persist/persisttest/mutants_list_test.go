package persisttest_test

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// filtered lists everything and keeps what keep says.
func filtered(s *store, ctx context.Context, q persist.Query, keep func(*persist.Record) bool) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		for r, err := range s.List(ctx, q) {
			if (err != nil || keep(&r)) && !yield(r, err) {
				return
			}
		}
	}
}

// mutantListOrder: by page, newest page first.
func mutantListOrder() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			return func(yield func(persist.Record, error) bool) {
				var head []persist.Record
				for r, err := range s.List(ctx, q) {
					if err != nil {
						yield(r, err)
						return
					}
					if head = append(head, r); len(head) == 350 {
						slices.Reverse(head)
					}
					if len(head) < 350 {
						continue
					}
					for _, r := range head {
						if !yield(r, nil) {
							return
						}
					}
					head = head[:0:0]
				}
				for _, r := range head {
					if !yield(r, nil) {
						return
					}
				}
			}
		},
		fails: []string{"list/cancelled", "list/changing"},
	}
}

// mutantListResumes: repeats the record that it is to go on after.
func mutantListResumes() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if q.After > 0 && q.Key == "" && q.Unresolved == nil && !q.AnyUnresolved && q.States == nil {
				q.After--
			}
			return s.List(ctx, q)
		},
		fails: []string{"erase/ended", "list/follows", "list/late"},
	}
}

// mutantListBodyCalls: goes on for as long as there is something new.
func mutantListBodyCalls() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			return func(yield func(persist.Record, error) bool) {
				for again := true; again; {
					again = false
					for r, err := range s.List(ctx, q) {
						if !yield(r, err) || err != nil {
							return
						}
						again, q.After = true, r.Seq
					}
				}
			}
		},
	}
}

// mutantListBreak: does not stop.
func mutantListBreak() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			return func(yield func(persist.Record, error) bool) {
				for r, err := range s.List(ctx, q) {
					_ = yield(r, err)
				}
			}
		},
	}
}

func mutantListCancelled() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			return s.List(context.WithoutCancel(ctx), q)
		},
	}
}

// mutantListChanging: gives again what has changed meanwhile.
func mutantListChanging() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			return func(yield func(persist.Record, error) bool) {
				var seen []persist.Record
				for r, err := range s.List(ctx, q) {
					if !yield(r, err) {
						return
					}
					seen = append(seen, r)
				}
				if len(seen) < 350 {
					return
				}
				for _, r := range seen {
					now, err := s.Get(ctx, r.ID)
					if err == nil && now.Revision != r.Revision && !yield(now, nil) {
						return
					}
				}
			}
		},
	}
}

// mutantQueryAccounts: any account that begins so.
func mutantQueryAccounts() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if q.AllAccounts || q.Unresolved != nil || q.Account == "" {
				return s.List(ctx, q)
			}
			account := q.Account
			q.AllAccounts = true
			return filtered(s, ctx, q, func(r *persist.Record) bool { return strings.HasPrefix(r.Account, account) })
		},
		fails: []string{"erase/ended", "erase/scoped"},
	}
}

// mutantQueryStates: looks at the first state only.
func mutantQueryStates() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if len(q.States) > 1 {
				q.States = q.States[:1]
			}
			return s.List(ctx, q)
		},
	}
}

// mutantQueryKey: does not look into scopes.
func mutantQueryKey() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if q.Key == "" || q.AllAccounts {
				return s.List(ctx, q)
			}
			account := q.Account
			return filtered(s, ctx, q, func(r *persist.Record) bool { return r.Account == account })
		},
		fails: []string{"erase/ended", "erase/scoped", "query/together"},
	}
}

// mutantQueryOrigin: looks at the beginning of the origin only.
func mutantQueryOrigin() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if q.Origin != "" {
				q.Origin = ""
				return filtered(s, ctx, q, func(r *persist.Record) bool { return r.Origin[:8] == "https://" })
			}
			return s.List(ctx, q)
		},
	}
}

// mutantQueryDue: a moment late.
func mutantQueryDue() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if !q.DueBy.IsZero() && q.States == nil && q.Unresolved == nil && !q.AnyUnresolved {
				q.DueBy = q.DueBy.Add(-1)
			}
			return s.List(ctx, q)
		},
	}
}

// mutantQueryUnresolved: takes a chosen key for an unresolved one.
func mutantQueryUnresolved() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if q.Unresolved == nil {
				return s.List(ctx, q)
			}
			fingerprint := q.Unresolved
			q.Unresolved = nil
			return filtered(s, ctx, q, func(r *persist.Record) bool {
				return slices.Equal(r.Fingerprint, fingerprint) && (r.Unreported || !r.State.Final())
			})
		},
	}
}

// mutantQueryAnyUnresolved: forgets those of other accounts.
func mutantQueryAnyUnresolved() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if !q.AnyUnresolved || !q.AllAccounts || q.States != nil {
				return s.List(ctx, q)
			}
			return filtered(s, ctx, q, func(r *persist.Record) bool { return r.Account != "b" })
		},
	}
}

// mutantQueryTogether: a key is enough.
func mutantQueryTogether() mutant {
	return mutant{
		list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
			if q.Key != "" {
				q.States = nil
			}
			return s.List(ctx, q)
		},
	}
}
