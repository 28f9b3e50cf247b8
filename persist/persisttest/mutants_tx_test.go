package persisttest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// fakeTx is a transaction of a store: what it has begun stands once it commits.
type fakeTx struct{ pending []persist.Record }

// newTx makes a transaction of a journal under test.
func newTx(j persist.Journal) (tx any, commit, rollback func() error, err error) {
	begun := &fakeTx{}
	commit = func() error {
		for _, r := range begun.pending {
			if _, _, err := j.Begin(context.Background(), r); err != nil {
				return err
			}
		}
		return nil
	}
	return begun, commit, func() error { return nil }, nil
}

// BeginTx implements [persist.TxBeginner].
func (o *opening) BeginTx(ctx context.Context, tx *sql.Tx, r persist.Record) (persist.Record, bool, error) {
	return o.BeginIn(ctx, tx, r)
}

// BeginIn implements [persist.TxBeginner].
func (o *opening) BeginIn(ctx context.Context, tx any, r persist.Record) (persist.Record, bool, error) {
	own, is := tx.(*fakeTx)
	if !is {
		return persist.Record{}, false, fmt.Errorf("%w: %w: a %T", persist.ErrOutcomeUnknown, persist.ErrInvalid, tx)
	}
	if o.s.m.beginIn != nil {
		return o.s.m.beginIn(o.s, ctx, own, r)
	}
	standing, err := o.s.Get(ctx, r.ID)
	if !errors.Is(err, persist.ErrNotFound) {
		return standing, false, err
	}
	own.pending = append(own.pending, r)
	r.Revision = 1
	return r, true, nil
}

// mutantTxBegin: begins at once, whatever becomes of the transaction.
func mutantTxBegin() mutant {
	return mutant{
		beginIn: func(s *store, ctx context.Context, _ *fakeTx, r persist.Record) (persist.Record, bool, error) {
			return s.Begin(ctx, r)
		},
	}
}

// mutantTxStanding: gives the record of the transaction for the one that stands.
func mutantTxStanding() mutant {
	return mutant{
		beginIn: func(s *store, ctx context.Context, tx *fakeTx, r persist.Record) (persist.Record, bool, error) {
			r.Revision = 1
			if _, err := s.Get(ctx, r.ID); !errors.Is(err, persist.ErrNotFound) {
				return r, false, err
			}
			tx.pending = append(tx.pending, r)
			return r, true, nil
		},
	}
}
