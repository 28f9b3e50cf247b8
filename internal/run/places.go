package run

import (
	"context"
	"errors"
	"slices"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds at which place an operation is looked for and begun. Every client looks first at the one of its account and key.
// Only beside a record of another scope (Stripe-Account …) it takes a second place, which names the scope: see package operation.

// errForgottenBefore refuses a second place where the record of the first may be forgotten before: then the same operation would be
// begun there once more.
var errForgottenBefore = errors.New("an operation of another scope has this key, and is to be forgotten (KeepKey); name another key")

// place notes to whom the operation belongs, and under which account it is looked for and begun, also where ctx has ended: an
// error of such a call depends on it. Errors: the journal's, and errForgottenBefore.
func (e *engine) place(ctx context.Context, op *preparedRequest) error {
	if err := e.identify(ctx, op); err != nil {
		return err
	}
	if op.named.Keyless && e.cfg.randomKeys || !op.named.Scoped() { // no operation can have the key; or its scope is met with its record
		return nil
	}
	return e.choosePlace(ctx, op, nil)
}

// choosePlace gives the operation the place at which it exists, or is to be begun, by all records of its key in its account. running
// is one that a call of this process runs, whose record may not be there yet; nil: there is none. Errors: as place.
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
	for _, rec := range beside {
		if rec.Account == op.rec.Account {
			return nil
		}
	}
	for _, rec := range beside {
		if rec.Account == op.named.Account && rec.KeepKey != 0 {
			return errForgottenBefore
		}
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

// placesMax bounds how often a call looks for another place.
const placesMax = 8

// elsewhere reports whether the operation may stand at another place than that at which rec was met: rec is of another scope, or
// the journal was not looked through yet, and scopes may be what tells the requests apart.
func (op *preparedRequest) elsewhere(rec *persist.Record) bool {
	switch {
	case op.places >= placesMax:
		return false
	case op.read.OtherScope(rec):
		return true
	}
	return op.places == 0 && len(rec.Scopes)+len(op.named.Scopes) > 0 && op.read.Compare(rec) != request.SameRequest
}

// ofCall returns the record of a call that named a key, at whichever place it stands; persist.ErrNotFound if there is none. at is what
// stands at its first place, and err what the journal said of that.
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

// keepsPlace reports whether a record must stay although nothing came of it: a second place stands beside it, which would be begun
// once more at the first by whoever does not count its scope. Errors: the journal's.
func (e *engine) keepsPlace(ctx context.Context, rec *persist.Record) (bool, error) {
	if len(rec.Scopes) == 0 || rec.Account != request.Base(rec.Account) || rec.Generated && !rec.Business {
		return false, nil
	}
	all, err := e.beside(ctx, rec.ID)
	return slices.ContainsFunc(all, func(other persist.Record) bool { return other.Account != rec.Account }), err
}
