package run

import (
	"context"
	"iter"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// erasedNames is a journal that yields an erased record under the account and the key by which it was asked for: whoever asks has them, and the record has
// digests of them. A listing that names no key yields the digests.
type erasedNames struct{ persist.Journal }

// Unwrap returns the journal itself, for persist.As.
func (j erasedNames) Unwrap() persist.Journal { return j.Journal }

// Begin implements persist.Journal.
func (j erasedNames) Begin(ctx context.Context, rec persist.Record) (existing persist.Record, created bool, err error) {
	existing, created, err = j.Journal.Begin(ctx, rec)
	if existing.Erased {
		existing.ID = rec.ID
	}
	return existing, created, err
}

// Get implements persist.Journal.
func (j erasedNames) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	rec, err := j.Journal.Get(ctx, id)
	if rec.Erased {
		rec.ID = id
	}
	return rec, err
}

// List implements persist.Journal.
func (j erasedNames) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if q.Key == "" {
		return j.Journal.List(ctx, q)
	}
	return func(yield func(persist.Record, error) bool) {
		for rec, err := range j.Journal.List(ctx, q) {
			if err == nil && rec.Erased {
				err = j.name(ctx, &rec, &q)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// name gives an erased record the key of the query that found it, and as much of its account as the query has. Errors: the journal's.
func (j erasedNames) name(ctx context.Context, rec *persist.Record, q *persist.Query) error {
	secret, err := j.Secret(ctx)
	if err != nil {
		return err
	}
	rec.Key = q.Key
	if inside, of := strings.CutPrefix(rec.Account, q.Erased(secret).Account); of && !q.AllAccounts {
		rec.Account = q.Account + inside
	}
	return nil
}
