package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file looks at the operation in whose place another one stands, or is about to begin: the one that a Redrive or a Rekey has named, or the
// generation before its key. An event of the API may prove the old one meanwhile, and a Rekey may have begun another one in its place.

// oldStops reports whether the operation in whose place this one stands forbids to send it, with the reason as the error. It is asked before each
// attempt, when the run's own record stands: one read. So of a Rekey and a Do of the next generation, begun at once, one at most is sent. An event
// that comes after that read, while the attempt is on its way, is told (EventContradicted). An error alone: the journal does not tell.
func (r *run) oldStops(ctx context.Context) (stops bool, err error) {
	if r.given.AskedAgain {
		return false, nil
	}
	before := r.rec.Replaces
	if before == "" {
		before = generationBefore(&r.rec, 1)
	}
	cause, err := r.admission.stoppedBy(ctx, &r.rec, before)
	if cause != nil {
		return true, cause
	}
	return false, err
}

// checkPredecessors stops a call before it begins a next generation, while a Rekey has begun another key in the place of a generation before it, or
// an event of the API contradicts how the one before has ended. Nothing is said of an effect.
func (b *admission) checkPredecessors(ctx context.Context, name string, op *preparedRequest) error {
	for back := 1; back <= generationsAhead; back++ {
		before := generationBefore(op.rec, back)
		if before == "" {
			return nil
		}
		cause, err := b.stoppedBy(ctx, op.rec, before)
		switch {
		case err != nil:
			return b.unbegun.errorOfPlace(ctx, name, op, err)
		case cause == nil:
			continue
		}
		if exists, err := b.unbegun.exists(ctx, op.rec.ID); err == nil && exists { // nothing is begun
			return nil
		}
		return newError(name, unclear(op.rec.Key), cause, ErrKeyReused)
	}
	return nil
}

// generationBefore returns the key of a generation so many before that of a record; "" if there is none, or if the key is not the program's.
func generationBefore(rec *persist.Record, back int) string {
	first, n := request.Generations(rec.Key)
	if n <= back || rec.KeyOfOneCall() {
		return ""
	}
	return request.Generation(first, n-back)
}

// stoppedBy returns the reason against a send of rec by the operation before it; nil if there is none. Errors: the journal's.
func (b *admission) stoppedBy(ctx context.Context, rec *persist.Record, before string) (cause, err error) {
	if before == "" {
		return nil, nil
	}
	old, err := b.places.Before(ctx, rec, before)
	switch {
	case errors.Is(err, persist.ErrNotFound): // or it is forgotten: no event finds it
		return nil, nil
	case err != nil:
		return nil, err
	}
	led, err := b.ledTo(ctx, &old, rec.Key)
	op, another := operation.OpOf(&old, 0), old.ReplacedBy != "" && !led
	switch {
	case err != nil:
		return nil, err
	case !op.StopsSuccessor(rec.Replaces != "", another):
		return nil, nil
	case another && old.Erased:
		return fmt.Errorf("another key stands in the place of %q, whose record was erased; go on with that one, or under a new key", old.Key), nil
	case another:
		return fmt.Errorf("the key %q stands in the place of %q; go on with that one", old.ReplacedBy, old.Key), nil
	}
	return fmt.Errorf("the operation %q, in whose place it stands, took effect: an event of the API says so; settle or abandon this one", old.Key), nil
}

// ledTo reports whether the operation that a record names in its place has the key, or one of the generations before it. In an erased record a
// digest stands for that operation's key. Errors: the journal's.
func (b *admission) ledTo(ctx context.Context, old *persist.Record, key string) (bool, error) {
	if !old.Erased || old.ReplacedBy == "" {
		return request.LedTo(old.ReplacedBy, key), nil
	}
	secret, err := b.journal.Secret(ctx)
	first, n := request.Generations(key)
	for g := n; err == nil && g > max(0, n-familyMax); g-- {
		if persist.ErasedKey(secret, request.Generation(first, g)) == old.ReplacedBy {
			return true, nil
		}
	}
	return false, err
}
