package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file looks for the operations begun by a Redrive or a Rekey to replace another one, for a call with the key of that one.

// replacement is the last of the operations begun to replace another one, one after the other.
type replacement struct {
	key  string
	rec  persist.Record
	gone bool // the journal has none under the key: the act was broken off, or the operation is forgotten or erased
}

// replacement returns the last operation begun to replace another one, and notes that a caller is told of its end. replaced is false if there is none, or if that one
// had no effect either. Errors: the journal's.
func (u *unbegun) replacement(ctx context.Context, rec *persist.Record) (last replacement, replaced bool, err error) {
	op, at := operation.OpOf(rec, 0), rec
	for links := 0; at.ReplacedBy != "" && !at.Erased && at.Sealed() == nil; links++ {
		if links == operation.IntentMax { // a call with the key of that one is told of those after it
			return last, op.IsReplacedBy(&operation.Op{}), nil
		}
		next, err := u.find(ctx, &older{Relative: operation.Relative{Key: at.ReplacedBy, Named: true}, after: at})
		switch {
		case errors.Is(err, persist.ErrNotFound) || err == nil && !operation.IsSuccessor(at, &next):
			return replacement{key: at.ReplacedBy, gone: true}, op.IsReplacedBy(&operation.Op{}), nil
		case err != nil:
			return last, false, err
		}
		last = replacement{key: next.Key, rec: next}
		at = &last.rec
	}
	if at == rec {
		return last, false, nil
	}
	ended := operation.OpOf(at, 0)
	if replaced = op.IsReplacedBy(&ended); replaced {
		err = u.marks.note(ctx, at) // the call is told of its end, if it has one
	}
	return last, replaced, err
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
