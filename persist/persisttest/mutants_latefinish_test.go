package persisttest_test

import (
	"context"
	"errors"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantLateItself: it names the journal that it embeds.
func mutantLateItself() mutant { return mutant{wakes: true, lateOther: true} }

// mutantLateVisible: what is finished late is confirmed.
func mutantLateVisible() mutant {
	return mutant{
		late: func(s *store, ctx context.Context, r persist.Record) error {
			if r.State == persist.StateMismatched {
				r.State = persist.StateConfirmed
			}
			return s.Finish(ctx, r)
		},
	}
}

// mutantLateFinal: a second finish is fine.
func mutantLateFinal() mutant {
	return mutant{
		late: mutantFinishFinal().finish,
	}
}

// mutantLateStale: an old revision will do for what is held.
func mutantLateStale() mutant {
	return mutant{
		late: func(s *store, ctx context.Context, r persist.Record) error {
			if now, err := s.Get(ctx, r.ID); err == nil && now.Seq == r.Seq && now.HoldReason != "" && r.Note == "" {
				r.Revision = now.Revision
			}
			return s.Finish(ctx, r)
		},
	}
}

// mutantLateNotPending: anything is final.
func mutantLateNotPending() mutant {
	return mutant{
		late: mutantFinishNotPending().finish,
	}
}

// mutantLateFields: keeps the lease for as long as it lasts.
func mutantLateFields() mutant {
	return mutant{
		late: func(s *store, ctx context.Context, r persist.Record) error {
			if now, err := s.Get(ctx, r.ID); err == nil && r.LeaseOwner == "" {
				r.LeaseOwner, r.LeaseUntil = now.LeaseOwner, now.LeaseUntil
			}
			return s.Finish(ctx, r)
		},
	}
}

// mutantLateRefuses: what is not there need not be finished.
func mutantLateRefuses() mutant {
	return mutant{
		late: func(s *store, ctx context.Context, r persist.Record) error {
			err := s.Finish(ctx, r)
			if errors.Is(err, persist.ErrNotFound) {
				return nil
			}
			return err
		},
	}
}

// mutantLateCancelled: does what nobody waits for.
func mutantLateCancelled() mutant {
	return mutant{
		late: func(s *store, ctx context.Context, r persist.Record) error {
			return errors.Join(s.Finish(context.WithoutCancel(ctx), r), ctx.Err())
		},
	}
}

// mutantLateBeside: takes the change of another, which shares the statement with it, for its own.
func mutantLateBeside() mutant {
	return mutant{
		late: func(s *store, ctx context.Context, r persist.Record) error {
			err := s.Finish(ctx, r)
			if now, e := s.Get(ctx, r.ID); e == nil && errors.Is(err, persist.ErrStale) && now.Seq == r.Seq && now.Revision == r.Revision+1 {
				return nil
			}
			return err
		},
		fails: []string{"late/final", "late/stale"},
	}
}

// mutantLateDurable: keeps in memory what is finished late.
func mutantLateDurable() mutant {
	return mutant{
		late: func(s *store, ctx context.Context, r persist.Record) error {
			before, err := s.Get(ctx, r.ID)
			if err = errors.Join(err, s.Finish(ctx, r)); err == nil {
				s.remember(before)
			}
			return err
		},
		get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
			if before, ok := s.recall(id); ok && s.opened > 1 && before.Account != "closing" {
				return before, nil
			}
			return s.Get(ctx, id)
		},
	}
}

// mutantLateClose: forgets one of those that come while it closes.
func mutantLateClose() mutant {
	return mutant{
		late: func(s *store, ctx context.Context, r persist.Record) error {
			if r.Account == "closing" && s.count("late") == 12 {
				return nil
			}
			return s.Finish(ctx, r)
		},
	}
}
