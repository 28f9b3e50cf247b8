// Package place reads the records of one key. An operation stands at the place of its account and key, or, beside a record of another scope
// (Stripe-Account …), at a second place with the name of the scope: see package intent.
package place

import (
	"context"
	"errors"
	"slices"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Places reads the places of a journal. It is safe for concurrent use. No method ends with its context. The errors of all methods are the
// journal's.
type Places struct{ Journal persist.Journal }

// Of returns the records of a key in an account and at the places inside it: the accounts that headers of a request, its scopes, select there. The end of
// ctx does not end it.
func (p Places) Of(ctx context.Context, base persist.ID) (all []persist.Record, err error) {
	for rec, err := range p.Journal.List(context.WithoutCancel(ctx), persist.Query{Account: base.Account, Key: base.Key}) {
		if err != nil {
			return nil, err
		}
		if request.InAccount(&rec, base.Account) {
			all = append(all, rec)
		}
	}
	return all, nil
}

// OfCall returns the record of a call with a named key, at any of its places; persist.ErrNotFound if there is none. at and err are the result of
// reading the first place, that of id. scopes are the headers that select an account at the API, with the call's values; scoped: it has one of them. The
// other places are looked at if at is of another scope, or if nothing was found and the call is scoped.
func (p Places) OfCall(ctx context.Context, scopes []persist.Scope, scoped bool, id persist.ID, at persist.Record, err error) (persist.Record, error) {
	other := err == nil && intent.OtherScope(scopes, &at)
	if !other && !(errors.Is(err, persist.ErrNotFound) && scoped) {
		return at, err
	}
	return p.ofScopes(ctx, id, scopes)
}

// Before returns the record of the operation before another one, under an earlier key of its account and scopes; persist.ErrNotFound if there is
// none. It reads the place of rec's account first. Scopes are the headers that select an account at the API: with them the operation may stand at
// another place of the account.
func (p Places) Before(ctx context.Context, rec *persist.Record, key string) (persist.Record, error) {
	id := persist.ID{Account: rec.Account, Key: key}
	old, err := p.Journal.Get(context.WithoutCancel(ctx), id)
	if len(rec.Scopes) == 0 || err == nil && !intent.OtherScope(rec.Scopes, &old) || err != nil && !errors.Is(err, persist.ErrNotFound) {
		return old, err
	}
	id.Account = request.Base(rec.Account)
	return p.ofScopes(ctx, id, rec.Scopes)
}

// Anywhere returns a record of a key, whatever its account, that matches; persist.ErrNotFound if there is none.
func (p Places) Anywhere(ctx context.Context, key string, matches func(*persist.Record) bool) (persist.Record, error) {
	for rec, err := range p.Journal.List(context.WithoutCancel(ctx), persist.Query{Key: key, AllAccounts: true}) {
		if err != nil {
			return persist.Record{}, err
		}
		if matches(&rec) {
			return rec, nil
		}
	}
	return persist.Record{}, persist.ErrNotFound
}

// ofScopes returns the record with the scopes among all records of a key; persist.ErrNotFound if there is none.
func (p Places) ofScopes(ctx context.Context, id persist.ID, scopes []persist.Scope) (persist.Record, error) {
	all, err := p.Of(ctx, id)
	if err != nil {
		return persist.Record{}, err
	}
	for i := range all {
		if !intent.OtherScope(scopes, &all[i]) {
			return all[i], nil
		}
	}
	return persist.Record{}, persist.ErrNotFound
}

// IsKept reports whether a record must stay although nothing came of it: beside it stands a second place, a record of the same key for another account
// that a header (scope) selects. A client not counting the scope would begin the operation of the second once more at the first.
func (p Places) IsKept(ctx context.Context, rec *persist.Record) (bool, error) {
	if !intent.MayHaveSecondPlace(rec, request.Base(rec.Account)) {
		return false, nil
	}
	all, err := p.Of(ctx, rec.ID)
	return slices.ContainsFunc(all, func(other persist.Record) bool { return other.Account != rec.Account }), err
}

// Namesake returns the key of another operation of the account and origin with the same key on the wire; "" if there is none. Such a key is the other one
// with or without quotes.
func (p Places) Namesake(ctx context.Context, rec *persist.Record) (string, error) {
	other := request.OtherSpelling(rec)
	if other == "" {
		return "", nil
	}
	standing, err := p.Journal.Get(context.WithoutCancel(ctx), persist.ID{Account: rec.Account, Key: other})
	switch {
	case errors.Is(err, persist.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case standing.Origin != rec.Origin && standing.Origin != persist.Unkept: // Unkept: an erased record has no origin
		return "", nil
	}
	same, err := p.sameOnWire(ctx, &standing, rec)
	if !same || err != nil {
		return "", err
	}
	return other, nil
}

// sameOnWire reports whether the keys of two records are spelled alike for the API. An erased record has only a digest of the spelling;
// true if nobody can tell.
func (p Places) sameOnWire(ctx context.Context, standing, rec *persist.Record) (bool, error) {
	if standing.KeyOnWire() == persist.Unkept { // nobody can tell
		return true, nil
	}
	if !standing.Erased {
		return standing.KeyOnWire() == rec.KeyOnWire(), nil
	}
	secret, err := p.Journal.Secret(context.WithoutCancel(ctx))
	return err == nil && standing.KeyOnWire() == persist.ErasedKey(secret, rec.KeyOnWire()), err
}
