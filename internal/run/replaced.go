package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file looks for the operations begun by a Redrive or a Rekey to replace another one, and for the later generation of a placeholder, for a call with the key
// of that one.

// replacement is the last of the operations begun to replace another one, one after the other.
type replacement struct {
	key  string
	rec  persist.Record
	gone bool // the journal has none under the key: the act was broken off, or the operation is forgotten or erased
}

// replacement follows the chain of operations that replace rec, or the later generation of a placeholder, and returns the last one, or the first with an effect that
// an event of the API proves against its end. It notes that a caller is told of its end. last.gone: it has no record, and may have had an effect. replaced is false
// if there is none, or if the last one had no effect either. Errors: the journal's.
func (u *unbegun) replacement(ctx context.Context, rec *persist.Record) (last replacement, replaced bool, err error) {
	op, at := operation.OpOf(rec, 0), rec
	for links := 0; at.ReplacedBy != "" && !at.Erased && at.Sealed() == nil; links++ {
		// The empty Op stands for an operation of unknown end: an effect is possible.
		if links == intent.IntentMax { // a call with the key of that one is told of those after it
			return last, intent.IsReplacedBy(&op, &operation.Op{}), nil
		}
		// One link after the other: a person may have replaced the replacement.
		next, stands, err := inPlaceOf(ctx, u, at)
		switch {
		case err != nil:
			return last, false, err
		case stands == goneInPlace:
			return replacement{key: at.ReplacedBy, gone: true}, intent.IsReplacedBy(&op, &operation.Op{}), nil
		}
		if stands == nothingInPlace {
			break
		}
		last = replacement{key: next.Key, rec: next}
		at = &last.rec
		// The caller must hear of that one: it took effect, whatever follows it.
		if proven := operation.OpOf(at, 0); proven.IsContradicted() {
			break
		}
	}
	if at == rec {
		return last, false, nil
	}
	// By its end it decides whether the caller is told of it, or goes on with its own.
	ended := operation.OpOf(at, 0)
	if replaced = intent.IsReplacedBy(&op, &ended); replaced {
		err = u.marks.note(ctx, at) // the call is told of its end, if it has one
	}
	return last, replaced, err
}

// inPlace says what stands in the place of an operation, by the name in its record.
type inPlace uint8

const (
	standsInPlace  inPlace = iota
	goneInPlace            // the journal has no such operation
	nothingInPlace         // nor had it an effect
)

// inPlaceOf returns the operation that a record names as its replacement. stands says whether the journal has it; if not, whether it may have had an
// effect (goneInPlace), or certainly not (nothingInPlace). Errors: the journal's.
func inPlaceOf(ctx context.Context, u *unbegun, at *persist.Record) (next persist.Record, stands inPlace, err error) {
	next, err = findOlder(ctx, u.places, &older{Relative: intent.Relative{Key: at.ReplacedBy, Named: true}, after: at})
	switch {
	case err == nil && intent.IsSuccessor(at, &next):
		return next, standsInPlace, nil
	case err != nil && !errors.Is(err, persist.ErrNotFound):
		return next, goneInPlace, err
	}
	// The name alone proves no operation: the act may have been broken off between name and begin.
	nothing, err := u.leftNothing(ctx, at)
	if nothing {
		return next, nothingInPlace, err
	}
	return next, goneInPlace, err
}

// leftNothing reports whether a placeholder's later generation, for which its key was skipped, had no effect: intent.LeftNothing decides. It is false, too, if
// another process or call may still begin that one. at may be any other record. Without an account, a record of the key under any account counts: Client.Assign
// may have moved it. Errors: the journal's.
func (u *unbegun) leftNothing(ctx context.Context, at *persist.Record) (bool, error) {
	op := operation.OpOf(at, 0)
	// The best case first: if it does not hold, no read is needed.
	if !intent.LeftNothing(&op, false, false) {
		return false, nil
	}
	stands, mayAppear := false, false
	// At its own place, and at that of the base: the scope may have been added since.
	for _, account := range []string{at.Account, request.Base(at.Account)} {
		id := persist.ID{Account: account, Key: at.ReplacedBy}
		_, err := u.probe(ctx, id)
		if err != nil && !errors.Is(err, persist.ErrNotFound) {
			return false, err
		}
		// A call of this process may be about to begin it, or a begin without an answer may still show (MayAppear).
		running, _ := u.calls.Running(id)
		stands, mayAppear = stands || err == nil, mayAppear || running || u.notes.MayAppear(id, u.earliest())
	}
	if request.Base(at.Account) == "" {
		_, err := u.places.Anywhere(ctx, at.ReplacedBy, func(*persist.Record) bool { return true })
		if err != nil && !errors.Is(err, persist.ErrNotFound) {
			return false, err
		}
		stands = stands || err == nil
	}
	return intent.LeftNothing(&op, stands, mayAppear), nil
}

// refuseSkipped ends a call under a key that was skipped: nothing was sent under it, since a later generation was about to be sent. That one had no
// effect either. Nothing is sent now.
func (f *refusals) refuseSkipped(ctx context.Context, name string, rec *persist.Record) *result {
	cause := fmt.Errorf("nothing was sent under it, and a later try, %q, had no effect; go on with that key", rec.ReplacedBy)
	return f.refuse(ctx, name, rec, operation.Same, cause, ErrKeyReused)
}

// skippedError returns the error of a person's act on a placeholder, a record without a request under a skipped key. It says nothing of an effect.
func skippedError(name string, rec *persist.Record) *Error {
	about := unclear(rec.Key)
	about.state = rec.State
	return newError(name, about, fmt.Errorf("nothing was sent under it: it only says that a later try, %q, was; act on that one", rec.ReplacedBy), ErrKeyReused)
}

// refuseReplaced ends a call without a send: a person has begun another operation (by) in place of the one under the call's key, and the error
// tells of that one.
func (f *refusals) refuseReplaced(ctx context.Context, name string, rec *persist.Record, by *replacement) *result {
	if by.gone {
		about := unclear(rec.Key)
		about.state = rec.State
		return &result{err: newError(name, about, fmt.Errorf("%q was begun to replace it, and the journal has no record of that one", by.key), ErrKeyReused)}
	}
	cause := fmt.Errorf("a person began it to replace %q; go on with its key", rec.Key)
	if intent.IsSkipped(rec) {
		cause = fmt.Errorf("it is a later try of %q; go on with its key", rec.Key)
	}
	why := []error{ErrKeyReused}
	if by.rec.State.Final() {
		why = append(why, whyFinal(&by.rec))
	}
	return f.refuse(ctx, name, &by.rec, operation.KeyOnly, cause, why...)
}
