package run

import (
	"context"
	"errors"
	"slices"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the place for the search and the begin of an operation. Every client looks first at the place of its account and key.
// Only beside a record of another scope (Stripe-Account …) it takes a second place with the name of the scope: see package operation.

// errForgottenBefore refuses a second place if the record of the first may be forgotten before: then the same operation would be
// begun once more at the first.
var errForgottenBefore = errors.New("an operation of another scope has this key, and is to be forgotten (KeepKey); name another key")

// place notes the owner of the operation, and the account for its search and its begin. It does so also if ctx has ended: an error of
// such a call depends on it. Errors: the journal's, and errForgottenBefore.
func (e *engine) place(ctx context.Context, op *preparedRequest) error {
	if err := e.identify(ctx, op); err != nil {
		return err
	}
	if op.named.Keyless && e.cfg.randomKeys || !op.named.Scoped() { // no operation can have the key; or its scope is met with its record
		return nil
	}
	return e.choosePlace(ctx, op, nil)
}

// placeAnew is choosePlace beside no call under way.
func (e *engine) placeAnew(ctx context.Context, op *preparedRequest) error {
	return e.choosePlace(ctx, op, nil)
}

// choosePlace gives the operation the place of its record, or for its begin, by all records of its key in its account. Parameter running
// is one run by a call of this process, possibly without a record yet; nil: there is none. Errors: as place.
func (e *engine) choosePlace(ctx context.Context, op *preparedRequest, running *persist.Record) error {
	op.places++
	beside, err := e.beside(ctx, persist.ID{Account: op.named.Account, Key: op.rec.Key})
	if err != nil {
		return err
	}
	if running != nil && !slices.ContainsFunc(beside, func(rec persist.Record) bool { return rec.ID == running.ID }) {
		beside = append(beside, *running)
	}
	op.rec.Account = op.read.Place(op.named.Account, beside)
	_, op.rec.KeepKey = e.cfg.keeping(op.rec.Window)
	if op.named.Account == op.rec.Account && op.named.Scoped() {
		op.rec.KeepKey = 0 // as long as a second place may stand beside it
	}
	if !operation.MayTakePlace(op.rec.Account, op.named.Account, beside) {
		return errForgottenBefore
	}
	return nil
}

// beside returns the records of a key in an account and at the places inside it. Errors: the journal's.
func (e *engine) beside(ctx context.Context, base persist.ID) (all []persist.Record, err error) {
	for rec, err := range e.journal.List(context.WithoutCancel(ctx), persist.Query{Account: base.Account, Key: base.Key}) {
		if err != nil {
			return nil, err
		}
		if request.InAccount(&rec, base.Account) {
			all = append(all, rec)
		}
	}
	return all, nil
}

// placesMax bounds the number of a call's searches for another place.
const placesMax = 8

// elsewhere reports whether the operation may stand at another place than rec. It may if rec is of another scope. It may, too, if the
// journal was not looked through yet, and the requests may differ by their scopes.
func (op *preparedRequest) elsewhere(rec *persist.Record) bool {
	switch {
	case op.places >= placesMax:
		return false
	case op.read.OtherScope(rec):
		return true
	}
	return op.places == 0 && len(rec.Scopes)+len(op.named.Scopes) > 0 && op.read.Compare(rec) != request.SameRequest
}

// ofCall returns the record of a call with a named key, at any of its places; persist.ErrNotFound if there is none. Parameter at is the
// record at its first place, and err the journal's error at reading it.
func (e *engine) ofCall(ctx context.Context, named *request.Named, id persist.ID, at persist.Record, err error) (persist.Record, error) {
	other := err == nil && operation.OtherScope(named.Scopes, &at)
	if !other && !(errors.Is(err, persist.ErrNotFound) && named.Scoped()) {
		return at, err
	}
	all, err := e.beside(ctx, id)
	if err != nil {
		return persist.Record{}, err
	}
	for i := range all {
		if !operation.OtherScope(named.Scopes, &all[i]) {
			return all[i], nil
		}
	}
	return persist.Record{}, persist.ErrNotFound
}

// keepsPlace reports whether a record must stay although nothing came of it: a second place stands beside it. A client not counting the
// scope would begin the operation of the second once more at the first. Errors: the journal's.
func (e *engine) keepsPlace(ctx context.Context, rec *persist.Record) (bool, error) {
	if !operation.MayHaveSecondPlace(rec, request.Base(rec.Account)) {
		return false, nil
	}
	all, err := e.beside(ctx, rec.ID)
	return slices.ContainsFunc(all, func(other persist.Record) bool { return other.Account != rec.Account }), err
}

// choosePlace chooses the place of an operation by a look at the journal. It returns the error of the call.
func (c *Client) choosePlace(ctx context.Context, name string, op *preparedRequest, choose func(context.Context, *preparedRequest) error) error {
	op.took.enter(&op.took.spent.Journal)
	err := choose(ctx, op)
	op.took.leave()
	if err == nil {
		return nil
	}
	return c.notBegun(ctx, op.took, op, c.engine.errorOfPlace(ctx, name, op, err))
}
