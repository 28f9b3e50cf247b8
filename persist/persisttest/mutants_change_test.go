package persisttest_test

import (
	"context"
	"errors"
	"runtime"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantUpdateReplaces: never clears a lease.
func mutantUpdateReplaces() mutant {
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if now, err := s.Get(ctx, r.ID); err == nil && r.LeaseOwner == "" {
				r.LeaseOwner, r.LeaseUntil = now.LeaseOwner, now.LeaseUntil
			}
			return s.Update(ctx, r)
		},
		fails: []string{"claim/deserted", "claim/drives", "claim/renew", "claim/takes"},
	}
}

// mutantUpdateStale: the last one to write is right.
func mutantUpdateStale() mutant {
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			for {
				got, err := s.Update(ctx, s.current(ctx, r))
				if now, e := s.Get(ctx, r.ID); e == nil && !now.State.Final() && errors.Is(err, persist.ErrStale) && now.Seq == r.Seq {
					continue
				}
				return got, err
			}
		},
		fails: []string{"update/one-wins", "reopen/goes-on", "claim/fence"},
	}
}

// mutantUpdateOneWins: compares, then sets.
func mutantUpdateOneWins() mutant {
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if now, err := s.Get(ctx, r.ID); err != nil || now.Revision != r.Revision {
				return s.Update(ctx, r)
			}
			for range 20 {
				runtime.Gosched()
			}
			return s.Update(ctx, s.current(ctx, r))
		},
	}
}

// mutantUpdateSendUntil: keeps the time until which a send may be on its way as it is given.
func mutantUpdateSendUntil() mutant {
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			got, err := s.Update(ctx, r)
			got.SendUntil = r.SendUntil
			s.remember(got)
			return got, err
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			r, err := s.Get(ctx, id)
			if before, known := s.recall(id); known && r.Revision == before.Revision {
				r.SendUntil = before.SendUntil
			}
			return r, err
		},
		fails: []string{"update/replaces"},
	}
}

// mutantUpdateToken: keeps the first token that it is given.
func mutantUpdateToken() mutant {
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if now, err := s.Get(ctx, r.ID); err == nil && now.Token != "" {
				r.Token = now.Token
			}
			return s.Update(ctx, r)
		},
	}
}

// mutantUpdateFrozen: ignores another fingerprint.
func mutantUpdateFrozen() mutant {
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if now, err := s.Get(ctx, r.ID); err == nil {
				r.Fingerprint = now.Fingerprint
			}
			return s.Update(ctx, r)
		},
	}
}

// mutantUpdateUnfinishedOnly: finishes, too.
func mutantUpdateUnfinishedOnly() mutant {
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			if r.State.Final() {
				return r, s.Finish(ctx, r)
			}
			return s.Update(ctx, r)
		},
	}
}

// mutantFinishVisible: does not show the next caller that it is settled.
func mutantFinishVisible() mutant {
	return mutant{
		begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
			r, created, err := s.Begin(ctx, r)
			if r.State == persist.StateSettled {
				r.State, r.Effect = persist.StatePending, ""
			}
			return r, created, err
		},
		fails: []string{"erase/ended", "late/visible"},
	}
}

// mutantFinishFinal: a second finish is fine.
func mutantFinishFinal() mutant {
	return mutant{
		finish: func(s *store, ctx context.Context, r persist.Record) error {
			err := s.Finish(ctx, r)
			if now, e := s.Get(ctx, r.ID); e == nil && now.State.Final() && now.Seq == r.Seq && now.Revision == r.Revision && !now.Swept {
				return nil
			}
			return err
		},
	}
}

// mutantFinishStale: an old revision will do.
func mutantFinishStale() mutant {
	return mutant{
		finish: func(s *store, ctx context.Context, r persist.Record) error {
			if now, err := s.Get(ctx, r.ID); err == nil && now.Seq == r.Seq && !now.State.Final() {
				r.Revision = now.Revision
			}
			return s.Finish(ctx, r)
		},
		fails: []string{"claim/fence"},
	}
}

// mutantFinishNotPending: anything is final.
func mutantFinishNotPending() mutant {
	return mutant{
		finish: func(s *store, ctx context.Context, r persist.Record) error {
			if !r.State.Final() {
				_, err := s.Update(ctx, r)
				return err
			}
			return s.Finish(ctx, r)
		},
	}
}

// mutantChangeNotFound: creates what is not there.
func mutantChangeNotFound() mutant {
	return mutant{
		update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
			got, err := s.Update(ctx, r)
			if errors.Is(err, persist.ErrNotFound) {
				got, _, err = s.Begin(ctx, r)
			}
			return got, err
		},
	}
}

// mutantForgetRemoves: leaves what is held.
func mutantForgetRemoves() mutant {
	return mutant{
		forget: func(s *store, ctx context.Context, r persist.Record) error {
			if r.State == persist.StateHeld && r.Sends > 3 && s.count("held") == 1 {
				return nil
			}
			return s.Forget(ctx, r)
		},
		fails: []string{"query/any-unresolved", "query/unresolved"},
	}
}

// mutantForgetStale: forgets whatever exists.
func mutantForgetStale() mutant {
	return mutant{
		forget: func(s *store, ctx context.Context, r persist.Record) error {
			if now, err := s.Get(ctx, r.ID); err == nil && now.Seq == r.Seq && !now.State.Final() {
				r.Revision = now.Revision
			}
			return s.Forget(ctx, r)
		},
		fails: []string{"claim/fence"},
	}
}

// mutantForgetBegunAnew: takes the new record for the old one.
func mutantForgetBegunAnew() mutant {
	return mutant{
		forget: func(s *store, ctx context.Context, r persist.Record) error {
			if now, err := s.Get(ctx, r.ID); err == nil {
				r.Seq = now.Seq
			}
			return s.Forget(ctx, r)
		},
	}
}
