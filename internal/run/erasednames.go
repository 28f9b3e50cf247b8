package run

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// erasedNames is a journal that yields an erased record under the account and the key by which it was asked for: whoever asks has them, and the record has
// digests of them. A listing that names no key yields the digests.
type erasedNames struct{ persist.Journal }

// Unwrap returns the journal inside, for persist.As.
func (j erasedNames) Unwrap() persist.Journal { return j.Journal }

// Begin implements persist.Journal. Records that were erased have digests in place of their key and account. If one exists, Begin returns it with the
// ID of rec.
func (j erasedNames) Begin(ctx context.Context, rec persist.Record) (existing persist.Record, created bool, err error) {
	existing, created, err = j.Journal.Begin(ctx, rec)
	// The ID in the record is made of digests: callers compare it with their own.
	if existing.Erased {
		existing.ID = rec.ID
	}
	return existing, created, err
}

// Get implements persist.Journal. An erased record has digests in place of its key and account; Get returns it with id.
func (j erasedNames) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	rec, err := j.Journal.Get(ctx, id)
	if rec.Erased {
		rec.ID = id
	}
	return rec, err
}

// List implements persist.Journal. An erased record has digests in place of its key and account. If q has a key, List returns it with this key.
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

// name gives an erased record the key of the query q that found it, and the account of q. A record inside that account (oncehttp.ContextWithAccount) keeps the
// digest of its own: the query does not name that one. of is false for a record outside of q's account, and with AllAccounts q names none: the account stays a
// digest then; inside is the part of its own below that. Errors: the journal's, and ErrCorrupt for an account that the record's scopes do not lead to.
func (j erasedNames) name(ctx context.Context, rec *persist.Record, q *persist.Query) error {
	secret, err := j.Secret(ctx)
	if err != nil {
		return err
	}
	rec.Key = q.Key
	inside, of := strings.CutPrefix(rec.Account, q.Erased(secret).Account)
	if !of || q.AllAccounts {
		return nil
	}
	at, found := placeErased(secret, q.Account, rec.Scopes, rec.Account)
	switch rec.Account = q.Account + inside; {
	case found:
		rec.Account = at
	case request.InAccount(rec, q.Account):
		return fmt.Errorf("%w: the place of an erased record is not one of its scopes", persist.ErrCorrupt)
	}
	return nil
}

// placeErased returns the account inside at that is stored as this digest, made of the record's scopes: the values of headers that select an account. It tries
// them one inside the other: the text of a place begins with that of the place around it. The second result is false if none of the possible accounts has the
// digest.
func placeErased(secret []byte, at string, scopes []persist.Scope, stored string) (string, bool) {
	text := persist.ErasedID(secret, persist.ID{Account: at}).Account
	if text == stored || !strings.HasPrefix(stored, text) {
		return at, text == stored
	}
	name, inside := persist.SplitAccount(at)
	for i, scope := range scopes {
		next := persist.Account(name, append(slices.Clone(inside), [2]string{scope.Name, scope.Value})...)
		if place, found := placeErased(secret, next, scopes[i+1:], stored); found {
			return place, true
		}
	}
	return "", false
}
