package run

import (
	"errors"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file holds the calls of functions of the user, of the Config or the Transport: a call that waits for one of
// them may wait in vain.

// waitedInVain returns ErrInFlight if a wait for another call was ended since it could have no end: a function of the user, such as
// Config.Authorize, made the waiting call (a circle), or did not return in time. It returns nil for any other error.
func waitedInVain(err error) error {
	if errors.Is(err, inflight.ErrCircle) || errors.Is(err, inflight.ErrGuest) {
		return ErrInFlight
	}
	return nil
}

// notWaited turns the error of a wait into the error of a call about no single operation. A wait for itself, or for too long, becomes an *Error with
// ErrInFlight; any other err stays.
func notWaited(name string, err error) error {
	if waitedInVain(err) == nil {
		return err
	}
	return newError(name, unclear(""), err, ErrInFlight)
}

// profileOf returns the profile of rec; nil if this client does not know it. It may call Config.ProfileOf, a function of the user: while that runs,
// callers that wait for the run see it, and do not wait without an end.
func (e *engine) profileOf(call callers, rec *persist.Record) *profile.Profile {
	work := call.Work()
	work.Visit()
	defer work.Return()
	return e.cfg.profiles().of(rec)
}

// lacks returns the lack of this client for an act on rec (see gate.lacks); brought: the act has credentials of its own. It may call Config.OriginAllowed, a
// function of the user: while that runs, callers that wait for the run see it, and do not wait without an end.
func (e *engine) lacks(call callers, rec *persist.Record, prof *profile.Profile, brought bool) acts.Lack {
	work := call.Work()
	work.Visit()
	defer work.Return()
	return e.cfg.gate().lacks(rec, prof, brought)
}
