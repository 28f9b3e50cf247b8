package run

import (
	"errors"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file holds the state of a run during a function of the user: of the Config, or the Transport.

// waitedInVain returns ErrInFlight for the error of a wait without an end, or not ended in time, because of a function of the user;
// nil for any other error.
func waitedInVain(err error) error {
	if errors.Is(err, inflight.ErrCircle) || errors.Is(err, inflight.ErrGuest) {
		return ErrInFlight
	}
	return nil
}

// notWaited returns the error of a call about no single operation. For a wait in vain it is an *Error with
// ErrInFlight; any other err stays as it is.
func notWaited(name string, err error) error {
	if waitedInVain(err) == nil {
		return err
	}
	return newError(name, unclear(""), err, ErrInFlight)
}

// visiting calls f, a function of the user, and returns its error. While f runs, the callers waiting for the run
// see that it does, and need not wait for it without an end. A panic of f goes on.
func (r *run) visiting(f func() error) error {
	work := r.call.Work()
	work.Visit()
	defer work.Return()
	return f()
}

// lending is visiting for a run with or without its turn. Meanwhile it lends the turn to another. It takes the turn back at once: for a
// while, more runs may send than have a turn. After that, a run looks at window and lease again.
func (r *run) lending(f func() error) error {
	if r.admitted {
		r.turns.Lend(r.rec.Origin)
		defer r.turns.TakeBack(r.rec.Origin)
	}
	return r.visiting(f)
}

// profileOf is Config.profileOf; it may ask Config.ProfileOf.
func (e *engine) profileOf(call callers, rec *persist.Record) *profile.Profile {
	work := call.Work()
	work.Visit()
	defer work.Return()
	return e.cfg.profileOf(rec)
}

// lacks is Config.lacks; it may ask Config.OriginAllowed.
func (e *engine) lacks(call callers, rec *persist.Record, prof *profile.Profile, brought bool) operation.Lack {
	work := call.Work()
	work.Visit()
	defer work.Return()
	return e.cfg.lacks(rec, prof, brought)
}

// keepAnswer is Config.keepAnswer; it may ask Config.KeepHeader.
func (r *run) keepAnswer(a *persist.Answer) {
	work := r.call.Work()
	work.Visit()
	defer work.Return()
	r.cfg.keepAnswer(&r.rec, a)
}

// allows is Config.originAllowed for a run with or without its turn.
func (r *run) allows(origin string) (allowed bool) {
	if r.cfg.OriginAllowed == nil {
		return r.cfg.originAllowed(origin)
	}
	_ = r.lending(func() error {
		allowed = r.cfg.originAllowed(origin)
		return nil
	})
	return allowed
}

// Handing is called before a request is handed to the Transport, or an answer's body is read.
func (r *run) Handing() { r.call.Work().Visit() }

// Handed is called once the Transport has returned.
func (r *run) Handed() { r.call.Work().Return() }
