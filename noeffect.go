package oncehttp

import (
	"context"
	"errors"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// notStarted is the error of a call that began no operation, because of cause. It
// says "no effect" only after a look at what stands under every key that the call
// named; for a request without a key, at what stands unresolved or unreported for
// the same account, origin, method and target. Where the journal cannot be asked,
// or its own failure is the cause and in doubt, the outcome is unknown.
func (c *Client) notStarted(ctx context.Context, name string, named request.Named, cause, why error) *Error {
	e := c.notBegun(ctx, name, named, false, cause, why)
	if named.Keyless && e.is[0] == ErrNoEffect && named.Origin != "" {
		c.lookForSimilar(ctx, named, e)
	}
	return e
}

// notBegun is notStarted for a request that was read whole, and for which, if it has
// no key, refuseStray has looked. inFlight: this very call stands in the table of
// calls in flight.
func (c *Client) notBegun(ctx context.Context, name string, named request.Named, inFlight bool, cause, why error) *Error {
	e := &Error{Op: name, Outcome: OutcomeNotSent, Cause: cause, is: []error{ErrNoEffect, why}}
	if len(named.Keys) > 0 {
		e.Key = Key(named.Keys[0])
	}
	unread := named.Unread && len(named.Keys) == 0 // whatever it names may stand
	if unread || errors.Is(cause, persist.ErrUncertain) {
		e.doubt(persist.Record{ID: persist.ID{Key: string(e.Key)}})
		return e
	}
	if named.Keyless && c.cfg.randomKeys { // a key that was made just now stands nowhere
		return e
	}
	for _, key := range named.Keys {
		id := persist.ID{Account: named.Account, Key: key}
		if flying, _ := c.flights.flying(id); flying && !inFlight {
			e.doubt(persist.Record{ID: id})
			e.is = append(e.is, ErrInFlight)
			return e
		}
		standing, err := c.journal.Get(context.WithoutCancel(ctx), id)
		if !errors.Is(err, persist.ErrNotFound) {
			standing.ID = id
			e.doubt(standing)
			return e
		}
	}
	return e
}

// lookForSimilar makes e say "outcome unknown" if an unresolved or unreported
// operation under a generated key may be of the same request, whose body or key is
// not known.
func (c *Client) lookForSimilar(ctx context.Context, named request.Named, e *Error) {
	query := persist.Query{Account: named.Account, AnyUnresolved: true}
	for rec, err := range c.journal.List(context.WithoutCancel(ctx), query) {
		if err != nil {
			rec = persist.Record{ID: persist.ID{Key: string(e.Key)}}
		} else if !c.cfg.reader.Like(named, &rec) {
			continue
		} else if flying, stray := c.flights.flying(rec.ID); flying && !stray && !rec.State.Final() {
			continue // a call of its own, which was never in doubt
		}
		e.doubt(rec)
		return
	}
}

// doubt turns the verdict into "outcome unknown", because of what stands.
func (e *Error) doubt(standing persist.Record) {
	e.Key, e.State, e.Outcome = Key(standing.Key), standing.State, OutcomeUnknown
	e.is[0] = ErrOutcomeUnknown
}
