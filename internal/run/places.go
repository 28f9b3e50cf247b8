package run

import (
	"context"
	"errors"
	"slices"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/owner"
	"github.com/oncehttp/oncehttp/internal/place"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the place for the search and the begin of an operation. Every client looks first at the place of its account and key.
// Only beside a record of another scope (Stripe-Account …) it takes a second place with the name of the scope: see package intent.

// errForgottenBefore refuses a second place if the record of the first may be forgotten before: then the same operation would be
// begun once more at the first.
var errForgottenBefore = errors.New("an operation of another scope has this key, and is to be forgotten (KeepKey); name another key")

// seats chooses the places of operations. It is safe for concurrent use.
type seats struct {
	cfg    *Config
	places place.Places // of the records of a key
	owners owner.Owners // tells whether a record is the caller's
}

// place chooses the account for the operation's record, and notes its owner, by a search for records of the key. secret is the journal's, for a comparison of
// owners; nil if none is needed. It does so also if ctx has ended: an error of such a call depends on it. Errors: the journal's, and errForgottenBefore.
func (s *seats) place(ctx context.Context, op *preparedRequest) error {
	secret, err := s.owners.Identify(ctx, &op.named.Owner, op.rec)
	if err != nil {
		return err
	}
	op.secret = secret
	if op.named.Keyless && s.cfg.randomKeys || !op.named.Scoped() { // no operation can have the key; or no header selects an account, and a record of another scope is met later
		return nil
	}
	return s.choosePlace(ctx, op, nil)
}

// placeAnew chooses the account under which the operation is recorded once more: the record found first belongs to an operation for another
// account of the API. No call of this process runs the operation.
func (s *seats) placeAnew(ctx context.Context, op *preparedRequest) error {
	return s.choosePlace(ctx, op, nil)
}

// choosePlace sets the account of the operation's ID, and its KeepKey. It looks at all records of the key: the account is that of the operation's own record,
// or the one for its begin. running is an operation of the key that a call of this process runs, perhaps without a record yet; nil if there is none. op.places
// counts these looks. After an error the operation must not be begun. Errors: as place.
func (s *seats) choosePlace(ctx context.Context, op *preparedRequest, running *persist.Record) error {
	op.places++
	beside, err := s.places.Of(ctx, persist.ID{Account: op.named.Account, Key: op.rec.Key})
	if err != nil {
		return err
	}
	if running != nil && !slices.ContainsFunc(beside, func(rec persist.Record) bool { return rec.ID == running.ID }) {
		beside = append(beside, *running)
	}
	op.rec.Account = op.read.Place(op.named.Account, beside)
	s.cfg.keepsKey(op.rec, intent.KeysPlace{Base: op.named.Account == op.rec.Account, Scoped: op.named.Scoped()})
	if !intent.MayTakePlace(op.rec.Account, op.named.Account, beside) {
		return errForgottenBefore
	}
	return nil
}

// placesMax bounds the number of a call's searches for another place.
const placesMax = 8

// choosePlace sets the account under which a call's operation is recorded. The function choose finds it by a search of the journal. A returned error
// is final for the caller of the method called name: it says that nothing was begun, and has been reported to Config.Observe.
func choosePlace(ctx context.Context, c *Client, name string, op *preparedRequest, choose func(context.Context, *preparedRequest) error) error {
	op.took.enter(&op.took.spent.Journal)
	err := choose(ctx, op)
	op.took.leave()
	if err == nil {
		return nil
	}
	return tellNotBegun(ctx, c, op.took, op, c.engine.unbegun.errorOfPlace(ctx, name, op, err))
}
