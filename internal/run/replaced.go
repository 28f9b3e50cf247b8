package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file looks for what a Redrive or a Rekey has begun in the place of an operation, for a call with the key of that operation.

// replacement is the last of the operations that were begun in the place of another one, one after the other.
type replacement struct {
	key  string
	rec  persist.Record
	gone bool // the journal has none under the key: the act was broken off, or the operation is forgotten or erased
}

// replacement returns what was begun in the place of an operation; is is false if nothing was, or if nothing came of it. Errors: the journal's.
func (u *unbegun) replacement(ctx context.Context, rec *persist.Record) (r replacement, is bool, err error) {
	op, at := operation.OpOf(rec, 0), rec
	for links := 0; at.ReplacedBy != "" && !at.Erased && at.Sealed() == nil; links++ {
		if links == operation.IntentMax { // a call with the key of that one is told of those after it
			return r, op.IsReplacedBy(&operation.Op{}), nil
		}
		next, err := u.find(ctx, &older{Relative: operation.Relative{Key: at.ReplacedBy, Named: true}, after: at})
		switch {
		case errors.Is(err, persist.ErrNotFound) || err == nil && !operation.IsSuccessor(at, &next):
			return replacement{key: at.ReplacedBy, gone: true}, op.IsReplacedBy(&operation.Op{}), nil
		case err != nil:
			return r, false, err
		}
		r = replacement{key: next.Key, rec: next}
		at = &r.rec
	}
	if at == rec {
		return r, false, nil
	}
	last := operation.OpOf(at, 0)
	return r, op.IsReplacedBy(&last), nil
}

// find returns the record of an older operation; persist.ErrNotFound if there is none. One that is named may have been assigned to an account since, or left
// behind by an Assign of the other; a generation of an account may stand under none, from before the program named one.
func (u *unbegun) find(ctx context.Context, o *older) (persist.Record, error) {
	old, err := u.places.Before(ctx, o.after, o.Key)
	switch {
	case !errors.Is(err, persist.ErrNotFound):
		return old, err
	case o.Named:
		return u.places.Anywhere(ctx, o.Key, func(rec *persist.Record) bool { return operation.SameBytes(o.after, rec) })
	}
	for _, none := range request.Unassigned(request.Base(o.after.Account)) {
		unassigned := *o.after
		unassigned.Account = none
		if old, err = u.places.Before(ctx, &unassigned, o.Key); !errors.Is(err, persist.ErrNotFound) {
			break
		}
	}
	return old, err
}

// refuseReplaced ends a call without a send: it is told of the operation in the place of the one that it asked for.
func (f *refusals) refuseReplaced(ctx context.Context, name string, rec *persist.Record, by *replacement) *result {
	if by.gone {
		about := unclear(rec.Key)
		about.state = rec.State
		return &result{err: newError(name, about, fmt.Errorf("%q was begun to replace it, and the journal has no record of that one", by.key), ErrKeyReused)}
	}
	cause := fmt.Errorf("a person began it to replace %q; go on with its key", rec.Key)
	why := []error{ErrKeyReused}
	if by.rec.State.Final() {
		why = append(why, whyFinal(&by.rec))
	}
	return f.refuse(ctx, name, &by.rec, operation.KeyOnly, cause, why...)
}
