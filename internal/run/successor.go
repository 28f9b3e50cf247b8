package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file looks for what has replaced an operation, and writes the key of the replacing one into its record: the mark (Record.ReplacedBy). That write is
// a compare-and-set: of a Redrive, a Rekey and an Unsettle of one operation, in whatever processes, one at most succeeds.

// amendTries bounds the looks at a record that others amend meanwhile. Each of them gets on with it.
const amendTries = 20

// successor is the part that Redrive, Rekey and Unsettle share.
type successor struct {
	*engine
	ctx  context.Context
	name string    // of the call
	act  acts.Anew // which one it is
	// untold: the act goes on only while nobody was told of the end, see acts.IsUntold
	untold bool
}

// standing is the result of a look for what has replaced an operation.
type standing struct {
	acts.Successors
	named string          // one of them
	own   *persist.Record // begun by an earlier call of the same act; nil: none
	taken *persist.Record // of another operation under the key that the act would begin; nil: none
}

// look searches the journal for operations that have replaced old, or would forbid to replace it. next is the record that the act would begin; nil: none. The result
// names them, and has the record under next's key: own if the same act began it, taken if it is another operation. With untold (nobody was told of old's end) fewer
// later generations are looked at. errElsewherePlace: a request that selects another account has taken its record's place since.
func (s successor) look(old *persist.Record, next *persist.Record) (standing, error) {
	var found standing
	own := ""
	if next != nil {
		own = next.Key
	}
	// The record of old decides first: its mark is durable, and the looks below may miss a begin under way.
	if intent.NamesAnother(old, own) {
		found.Replaced, found.named = true, old.ReplacedBy
	}
	// Calls begin generations by themselves, without a mark in old.
	higher, err := s.nearest(old, intent.GenerationsAbove(old.Key, s.untold), own)
	switch {
	case err != nil:
		return found, err
	case higher != "" && !found.Replaced:
		found.Higher, found.named = true, higher
	}
	if next == nil {
		return found, nil
	}
	rec, err := s.journal.Get(s.ctx, next.ID)
	switch {
	case errors.Is(err, persist.ErrNotFound):
		return found, s.lookAssigned(old, next.Key, &found)
	case err != nil:
		return found, err
	}
	switch nextOf(old, &rec) {
	case intent.IsItsOwn:
		found.own = &rec
	case intent.IsOfScope:
		return found, errElsewherePlace
	default:
		found.Taken, found.taken = true, &rec
	}
	return found, nil
}

// nearest returns the first of these keys of other tries of old (generations) that has an operation; "" if none has. own is left out. If old has no account, the
// next generation counts under any account, the others do not. It looks for all of them at once: most do not exist, and one look after the other would take long
// in a slow journal. Errors: the journal's.
func (s successor) nearest(old *persist.Record, generations []string, own string) (string, error) {
	// One element for each look, so that they need no lock.
	exists, errs := make([]bool, len(generations)), make([]error, len(generations))
	var looks sync.WaitGroup
	for i, key := range generations {
		if key == own {
			continue
		}
		looks.Go(func() {
			crashed := apart(func() { exists[i], errs[i] = s.stands(old, key, key == intent.NextGeneration(old.Key)) })
			// A crash of a user's journal on another goroutine would end the program.
			if crashed != nil {
				errs[i] = crashed.err()
			}
		})
	}
	looks.Wait()
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	if at := slices.Index(exists, true); at >= 0 {
		return generations[at], nil
	}
	return "", nil
}

// lookAssigned looks for an operation of this key under any account. A person is about to begin an operation under that key, in place of old, which
// has no account. One that exists under an account may be the same payment. found gets the result.
func (s successor) lookAssigned(old *persist.Record, key string, found *standing) error {
	if request.Base(old.Account) != "" || old.ReplacedBy == key { // the act's own is found by unassignedKey
		return nil
	}
	exists, err := s.underAccount(key)
	if exists && !found.Replaced {
		found.Higher, found.named = true, key
	}
	return err
}

// underAccount reports whether any account but the empty one has an operation with this key.
func (s successor) underAccount(key string) (bool, error) {
	_, err := s.places.Anywhere(s.ctx, key, func(rec *persist.Record) bool { return request.Base(rec.Account) != "" })
	if errors.Is(err, persist.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// nextOf returns what rec means for a Redrive or Rekey of old: rec stands under the key that the act would begin, and is its own from an
// earlier call, one of another scope, or another operation.
func nextOf(old, rec *persist.Record) intent.AtNext {
	return intent.NextOf(old, rec, request.Base(rec.Account) == request.Base(old.Account))
}

// stands reports whether an operation of the same scope as old exists under a key, or may appear: under any account inside that of old, or without an
// account. anywhere: if old has no account, any account counts.
func (s successor) stands(old *persist.Record, key string, anywhere bool) (bool, error) {
	id := persist.ID{Account: request.Base(old.Account), Key: key}
	if anywhere && id.Account == "" {
		if exists, err := s.underAccount(key); exists || err != nil {
			return exists, err
		}
	}
	if id.Account != "" { // an Assign may have left it behind
		named := request.Named{Account: id.Account, Keys: []string{key}}
		if _, exists, err := s.unbegun.standsUnassigned(s.ctx, &named); exists || err != nil {
			return exists, err
		}
	}
	// Without scopes there is one place only.
	if exists, err := s.unbegun.exists(s.ctx, id); err != nil || len(old.Scopes) == 0 || !exists && !isScoped(old) {
		return exists, err
	}
	beside, err := s.places.Of(s.ctx, id)
	if err != nil {
		return false, err
	}
	for i := range beside {
		if !intent.OtherScope(old.Scopes, &beside[i]) {
			return true, nil
		}
	}
	// None of the records is of the scope: a begin under way would be at this place.
	id.Account = intent.Place(id.Account, old.Scopes, beside)
	return s.unbegun.exists(s.ctx, id)
}

// isScoped reports whether the request of an operation names an account of the API by a header, so that the account in the journal depends
// on it.
func isScoped(rec *persist.Record) bool {
	return slices.ContainsFunc(rec.Scopes, func(s persist.Scope) bool { return s.Value != "" })
}

// begunAt sets the account of a new operation's record to place, and by that the time for which its key is kept.
func begunAt(next *persist.Record, place string) {
	next.Account = place
	at := intent.KeysPlace{Key: next.Key, Base: place == request.Base(place), Scoped: isScoped(next)}
	next.KeepKey = at.KeepsKey(next.KeepKey)
}

// placed sets the account of next, which is to replace old: the one under which a Do of the same request finds it.
func (s successor) placed(old, next *persist.Record) error {
	base := request.Base(old.Account)
	next.Account = base
	if len(old.Scopes) == 0 {
		return nil
	}
	beside, err := s.places.Of(s.ctx, next.ID)
	if err != nil {
		return s.failed(old, err)
	}
	// The same function that a Do asks: both must come to one place.
	next.Account = intent.Place(base, old.Scopes, beside)
	// An operation may have been forgotten there, and nobody could tell the new one from it.
	if !intent.MayTakePlace(next.Account, base, beside) {
		return s.refusals.refuse(s.ctx, s.name, old, operation.KeyOnly, errForgottenBefore, ErrConfig).err
	}
	return nil
}

// may returns the error for an operation that must not be replaced by another one, by what look has found in the journal; nil: it may. The
// error names what has replaced it.
func (s successor) may(old *persist.Record, found *standing) error {
	op := operation.OpOf(old, 0)
	switch s.act.MayAnew(&op, found.Successors, s.clock.Earliest()) {
	case acts.NotAbsent:
		return s.refusals.refuse(s.ctx, s.name, old, operation.KeyOnly, fmt.Errorf("it is %s, and not %s", endOf(old), wantedBy(s.act)), whyFinal(old)).err
	case acts.IsErased:
		return s.refusals.refuse(s.ctx, s.name, old, operation.KeyOnly, errErased, ErrConfig).err
	case acts.IsWitnessed:
		cause := fmt.Errorf("an event of the API proves that it happened (%s %s)", old.Evidence.Type, old.Evidence.Event)
		return s.refusals.refuse(s.ctx, s.name, old, operation.KeyOnly, cause, whyFinal(old)).err
	case acts.IsSending:
		return s.refusals.refuse(s.ctx, s.name, old, operation.KeyOnly, sentUntil(&op), ErrInFlight).err
	case acts.IsReplaced:
		if intent.IsSkipped(old) {
			return skippedError(s.name, old)
		}
		// No name in a record: the key itself is taken by something else.
		if found.named == "" {
			cause := fmt.Errorf("%q belongs to another operation", found.taken.Key)
			return s.refusals.refuse(s.ctx, s.name, found.taken, operation.Other, cause, ErrKeyReused).err
		}
		about := unclear(old.Key)
		about.state = old.State
		return newError(s.name, about, fmt.Errorf("it is replaced by %q; if the journal has no such operation, the call that began it was cut off: make that call again", found.named), ErrKeyReused)
	}
	return nil
}

// sentUntil returns the cause of an error for an operation that a lost process may be sending.
func sentUntil(op *operation.Op) error {
	return fmt.Errorf("a process that had it may be sending it until %v; do this again after that", op.Deserted.UTC().Format(time.RFC3339))
}

// endOf names the end of a record, or its state.
func endOf(rec *persist.Record) string {
	switch operation.StandingOf(rec) {
	case operation.Succeeded, operation.Accepted, operation.Happened:
		return rec.State.String() + " as a success"
	case operation.Refused:
		return "refused"
	}
	return rec.State.String()
}

// wantedBy returns the ends of an operation on which this act is allowed, in words for an error.
func wantedBy(act acts.Anew) string {
	switch act {
	case acts.Redrives:
		return "refused or settled as absent"
	case acts.Rekeys:
		return "settled as absent"
	}
	return "settled"
}

// link names next as the replacement in the record of old, unless it is there. found is the result of look. With untold, the act is only for an operation with
// an end that nobody was told. On return it is durable that old has ended, and that next replaces it.
func (s successor) link(old *persist.Record, next persist.Record, found standing) error {
	for tries := 1; ; tries++ {
		if err := s.may(old, &found); err != nil {
			return err
		}
		switch {
		case old.ReplacedBy == next.Key:
			return nil
		case s.untold && !acts.IsUntold(old):
			return s.told(old)
		}
		// Amend also changes records that have ended, as long as the revision is the one that was read.
		linked, err := s.journal.Amend(s.ctx, intent.Linked(*old, next.Key))
		if err == nil {
			*old = linked
			return nil
		}
		// Another act may have been faster: the look decides anew.
		if err := s.again(old, err, tries); err != nil {
			return err
		}
		if found, err = s.look(old, &next); err != nil {
			return s.failed(old, err)
		}
	}
}

// again reads old once more after an Amend (a small change of an ended record) that failed, since the record has changed meanwhile. The
// caller then tries again. Any other error, or too many tries, is returned for the caller of the act.
func (s successor) again(old *persist.Record, err error, tries int) error {
	if !errors.Is(err, persist.ErrStale) || tries == amendTries {
		return s.failed(old, err)
	}
	now, err := s.journal.Get(s.ctx, old.ID)
	if err != nil {
		return s.failed(old, err)
	}
	*old = now
	return nil
}

// told returns the error of an act on an operation that may not be replaced: a caller may have been told of its end, and have begun it once more.
func (s successor) told(old *persist.Record) error {
	return s.refusals.refuse(s.ctx, s.name, old, operation.KeyOnly, errors.New("a caller may have been told of its end, and have begun it once more"), whyFinal(old)).err
}

// taken removes the name of the new operation from the record of old (the mark), as far as it can. The new key belongs to another operation, which
// began after the look; the error returned says so.
func (s successor) taken(old persist.Record, by *persist.Record) error {
	if old.ReplacedBy == by.Key {
		_, _ = s.journal.Amend(s.ctx, intent.Unlinked(old)) // else it names an operation that is another one's
	}
	found := standing{Successors: acts.Successors{Taken: true}, taken: by}
	return s.may(&old, &found)
}

// stillAlone looks once more for a next generation that a call has begun meanwhile, after the new operation was named in the record of old. If there
// is one, it removes the name and returns an error. A call that begins it later finds the name.
func (s successor) stillAlone(old, next *persist.Record) error {
	found, err := s.look(old, next)
	if err != nil {
		return journalError(s.name, next, err)
	}
	refused := s.may(old, &found)
	if refused != nil && found.Higher && found.own == nil {
		_, _ = s.journal.Amend(s.ctx, intent.Unlinked(*old)) // else the same Rekey goes on with it
	}
	return refused
}

// unassignedKey returns an error if an operation of the new key exists under no account, and none under the account: the act would begin
// one. The same holds for the act's own operation from an earlier call, wherever it was assigned to since.
func (s successor) unassignedKey(old, next *persist.Record) error {
	if old.ReplacedBy == next.Key {
		own, err := s.places.Anywhere(s.ctx, next.Key, func(rec *persist.Record) bool {
			return request.Base(rec.Account) != request.Base(next.Account) && intent.IsSuccessor(old, rec)
		})
		switch {
		case err == nil:
			return s.refusals.strangerError(s.ctx, s.name, own.ID, errBegunElsewhere)
		case !errors.Is(err, persist.ErrNotFound):
			return journalError(s.name, next, err)
		}
	}
	named := request.Named{Account: next.Account, Keys: []string{next.Key}}
	id, found, err := s.unbegun.standsUnassigned(s.ctx, &named)
	switch {
	case err != nil:
		return journalError(s.name, next, err)
	case found && !standsIn(s.ctx, s.unbegun.journal, next.ID):
		return s.refusals.strangerError(s.ctx, s.name, id, s.refusals.unassignedCause(s.ctx, id, next.Account))
	}
	return nil
}

// unstopped returns an error if an operation before old forbids to replace old: an event of the API proves that one, or another key has replaced it. next is
// the record of the new operation, with the name of old, and not in the journal yet (true).
func (s successor) unstopped(old, next *persist.Record) error {
	cause, _, err := s.admission.stoppedByOlder(s.ctx, next, true)
	switch {
	case err != nil:
		return s.failed(old, err)
	case cause == nil:
		return nil
	}
	about := unclear(old.Key)
	about.state = old.State
	return newError(s.name, about, cause, ErrKeyReused)
}

// errBegunElsewhere refuses to begin an operation once more at a place that it has left.
var errBegunElsewhere = errors.New("an earlier call has begun the operation in its place, and Client.Assign has given that to an account since")

// failed returns the error for a failure err of the journal. It does not rule out an effect: the act (such as a Redrive or a Rekey) may have done a part of its
// work. errElsewherePlace is returned as it is: the caller looks again.
func (s successor) failed(old *persist.Record, err error) error {
	if errors.Is(err, errElsewherePlace) {
		return err
	}
	return outrun(s.name, &persist.Record{ID: old.ID, State: old.State, MaybeSent: true}, err)
}
