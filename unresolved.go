package oncehttp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds what a call looks at before it begins an operation, or before it says that it began none: which
// operations exist under the keys that it names, and which may be of the same request without a key.

// An operation under a generated key is unresolved while it is unfinished, and unreported once Resume or Run ended it,
// until a caller with its key was told how. The same request without a key might then take effect for the second time.
var (
	errUnresolved = errors.New("the same request was sent before under this generated key; send it with this key, settle it or abandon it")
	errUnreported = errors.New("the same request was sent before under this generated key, and Resume or Run ended it; ask for its answer with this key")
)

// checkUnresolved stops a request without a key if the same request, under a generated key, is unresolved or
// unreported: a loop around Do must not pay twice. It looks by the recipe of every operation that may be, since another
// version, profile or configuration may have begun it.
func (e *engine) checkUnresolved(ctx context.Context, name string, op *preparedRequest) error {
	look := context.WithoutCancel(ctx)
	if err := e.checkLost(look, name, op); err != nil {
		return err
	}
	recipes, err := e.shared.recipes.forAccount(look, e.journal, op.rec, e.leases != nil)
	if err != nil {
		return e.couldNotLook(name, op, err)
	}
	for _, recipe := range recipes {
		query := persist.Query{Account: op.rec.Account}
		sum, known := op.read.FingerprintBy(recipe)
		if query.Unresolved = sum; !known {
			query.AnyUnresolved = true // compared one by one; only after a change of configuration
		}
		for rec, err := range e.journal.List(look, query) {
			switch {
			case err != nil:
				return e.couldNotLook(name, op, err)
			// Same key: a deterministic NewKey gave it again; Begin finds that record.
			case rec.Account != op.rec.Account || rec.Key == op.rec.Key || e.runsUndoubted(&rec):
				continue
			case !known && (rec.Recipe != recipe || !op.read.Same(&rec)):
				continue
			case e.endedSince(ctx, &rec):
				continue
			}
			return unresolvedError(name, &rec)
		}
	}
	return nil
}

// checkLost is checkUnresolved for operations that this process has begun and that are not in the journal, but may appear
// there. Whoever goes on with the key that the error names settles that.
func (e *engine) checkLost(ctx context.Context, name string, op *preparedRequest) error {
	like := e.shared.unwritten.mayAppearLike(func(rec *persist.Record) bool {
		return rec.Account == op.rec.Account && rec.Key != op.rec.Key && op.read.Same(rec)
	})
	for _, rec := range like {
		if _, err := e.journal.Get(ctx, rec.ID); err != nil { // one that is there is in the lists
			return unresolvedError(name, &rec)
		}
	}
	return nil
}

// couldNotLook is the error of a request without a key where the journal does not say what is unresolved.
func (e *engine) couldNotLook(name string, op *preparedRequest, err error) error {
	return &Error{Op: name, Key: e.keyForError(op.rec.Key), Cause: err, is: []error{ErrOutcomeUnknown}}
}

// unresolvedError names the operation that a request without a key would repeat.
func unresolvedError(name string, rec *persist.Record) error {
	cause := errUnresolved
	if rec.State.Final() {
		cause = errUnreported
	}
	return &Error{
		Op: name, Key: Key(rec.Key), State: rec.State, Attempts: rec.Attempts, Sends: rec.Sends, Cause: cause,
		is: []error{ErrOutcomeUnknown},
	}
}

// recipes caches, by account, which fingerprint recipes (see Record.Recipe) its possibly unresolved generated-key
// operations use. It reads them from the journal once, and each operation that begins adds its own. The zero value is
// ready; safe for concurrent use.
type recipes struct {
	mu    sync.Mutex
	known map[string][]string
}

// forAccount returns the recipes of own's account, own's first. If other processes share the journal, it reads the
// journal each time, since they may have begun operations under other recipes.
func (r *recipes) forAccount(ctx context.Context, j persist.Journal, own *persist.Record, otherProcesses bool) ([]string, error) {
	r.mu.Lock()
	list, read := r.known[own.Account]
	r.mu.Unlock()
	list = slices.Clone(list)
	if !read || otherProcesses { // without the lock: a journal that does not answer must not make calls wait one after the other
		for rec, err := range j.List(ctx, persist.Query{Account: own.Account, AnyUnresolved: true}) {
			if err == nil {
				err = rec.Sealed()
			}
			if err != nil {
				return nil, err
			}
			if rec.Account == own.Account && !slices.Contains(list, rec.Recipe) {
				list = append(list, rec.Recipe)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, recipe := range r.known[own.Account] { // what other calls have found meanwhile
		if !slices.Contains(list, recipe) {
			list = append(list, recipe)
		}
	}
	list = append([]string{own.Recipe}, slices.DeleteFunc(list, func(recipe string) bool { return recipe == own.Recipe })...)
	if r.known == nil {
		r.known = make(map[string][]string)
	}
	r.known[own.Account] = list
	return list, nil
}

// keyForError returns the key for an error to name, made by NewKey, or "" if keys are random: nothing can exist under a
// fresh random key, and a caller that goes on with it would begin a second operation.
func (e *engine) keyForError(made string) Key {
	if e.cfg.randomKeys {
		return ""
	}
	return Key(made)
}

// markReported notes that a caller with its key was told how the operation ended. A mark that cannot be cleared only
// refuses a caller without a key once more.
func (e *engine) markReported(ctx context.Context, id persist.ID) {
	if err := e.journal.MarkReported(ctx, id); err != nil {
		e.cfg.log(ctx, slog.LevelError, "that an operation was reported could not be recorded", id.Key, err)
	}
}

// noRequest is the error of a call without a request.
func (e *engine) noRequest(name string, key Key) *Error {
	named := request.Named{Account: persist.Account(e.cfg.Account)}
	if key != "" {
		named.Keys = []string{string(key)}
	}
	return e.errorBeforeRead(context.Background(), name, named, errors.New("no request"), ErrConfig)
}

// errorBeforeRead makes the error of a call that began no operation because of cause: its request could not be read
// whole or not be taken, or it is a Settle or Abandon with wrong input. The error says "no effect" only after a look at
// what exists under every key that the call named; for a request without a key, at what is unresolved or unreported for
// the same account, origin, method and target. If the journal cannot be asked, or failed in a way that leaves doubt, the
// outcome is unknown.
func (e *engine) errorBeforeRead(ctx context.Context, name string, named request.Named, cause, why error) *Error {
	failed := e.errorAfterRead(ctx, name, named, false, cause, why)
	if named.Keyless && failed.is[0] == ErrNoEffect && named.Origin != "" {
		e.lookForSimilar(ctx, named, failed)
	}
	return failed
}

// errorAfterRead is the same for a call that began no operation after its request was read whole; for one without a key
// checkUnresolved must have looked. inFlight: this very call is in the table of calls in flight.
func (e *engine) errorAfterRead(ctx context.Context, name string, named request.Named, inFlight bool, cause, why error) *Error {
	failed := &Error{Op: name, Outcome: OutcomeNotSent, Cause: cause, is: []error{ErrNoEffect, why}}
	if len(named.Keys) > 0 {
		failed.Key = Key(named.Keys[0])
	}
	unread := named.Unread && len(named.Keys) == 0 // the key could not be read, so an operation may exist under it
	if unread || errors.Is(cause, persist.ErrUncertain) {
		failed.doubt(persist.Record{ID: persist.ID{Key: string(failed.Key)}})
		return failed
	}
	if named.Keyless && e.cfg.randomKeys { // a fresh random key: no operation can have it
		return failed
	}
	for _, key := range named.Keys {
		id := persist.ID{Account: named.Account, Key: key}
		unknown := e.recorded(ctx, func(other persist.ID) bool { return other == id })
		if running, _ := e.shared.calls.Running(id); unknown != nil || running && !inFlight {
			failed.doubt(persist.Record{ID: id})
			failed.is = append(failed.is, ErrInFlight)
			return failed
		}
		if e.shared.unwritten.mayAppear(id) {
			failed.doubt(persist.Record{ID: id})
			return failed
		}
		rec, err := e.journal.Get(context.WithoutCancel(ctx), id)
		if !errors.Is(err, persist.ErrNotFound) {
			rec.ID = id
			failed.doubt(rec)
			return failed
		}
	}
	return failed
}

// errorOfBegin makes the error of a call whose operation the journal did not begin, because of err. Where other processes share
// the journal, only a key that was made at random for this call has no operation for certain: a look at the journal may be
// answered by a server that lags behind the one that has it. An error that leaves the Begin in doubt names the key in any case, which
// goes on with the operation.
func (e *engine) errorOfBegin(ctx context.Context, name string, op *preparedRequest, inFlight bool, err error) *Error {
	fresh := op.named.Keyless && e.cfg.randomKeys
	notAsked := errors.Is(err, persist.ErrInvalid) || ctx.Err() != nil && errors.Is(err, ctx.Err())
	if !errors.Is(err, persist.ErrUncertain) && (fresh || notAsked || e.leases == nil) {
		return e.errorAfterRead(ctx, name, op.named, inFlight, err, ErrNotSent)
	}
	failed := &Error{Op: name, Cause: err, is: []error{ErrNoEffect, ErrNotSent}}
	failed.doubt(persist.Record{ID: op.rec.ID})
	return failed
}

// lookForSimilar makes failed say "outcome unknown" if an unresolved or unreported operation under a key that NewKey made
// may be of the same request, whose body or key is not known.
func (e *engine) lookForSimilar(ctx context.Context, named request.Named, failed *Error) {
	e.lookFor(ctx, persist.Query{Account: named.Account, AnyUnresolved: true}, named, failed)
	if !e.cfg.randomKeys { // NewKey may make keys of the business, which are not in that index
		states := []persist.State{persist.StatePending, persist.StateHeld}
		e.lookFor(ctx, persist.Query{Account: named.Account, States: states}, named, failed)
	}
}

// lookFor is lookForSimilar among the operations that query selects.
func (e *engine) lookFor(ctx context.Context, query persist.Query, named request.Named, failed *Error) {
	for rec, err := range e.journal.List(context.WithoutCancel(ctx), query) {
		if err != nil || rec.Sealed() != nil {
			failed.doubt(persist.Record{ID: persist.ID{Key: string(e.keyForError(string(failed.Key)))}})
			return
		}
		if e.cfg.reader.Like(named, &rec) && !e.runsUndoubted(&rec) && !e.endedSince(ctx, &rec) {
			failed.doubt(rec)
			return
		}
	}
}

// runsUndoubted reports whether a call of this process runs the operation now, and nothing was in doubt before that call.
func (e *engine) runsUndoubted(rec *persist.Record) bool {
	running, inDoubt := e.shared.calls.Running(rec.ID)
	return running && !inDoubt && !rec.State.Final()
}

// endedSince reports whether an operation has ended since it was listed as unfinished, and its callers know how: a call that has
// given its answer writes its record a moment later, and may have done so between the look at the journal and that at the calls
// in flight, or keeps another call with the key waiting for that. Where it cannot be known, the listing counts.
func (e *engine) endedSince(ctx context.Context, listed *persist.Record) bool {
	if listed.State.Final() || e.recorded(ctx, func(id persist.ID) bool { return id == listed.ID }) != nil {
		return false
	}
	now, err := e.journal.Get(context.WithoutCancel(ctx), listed.ID)
	return err == nil && now.State.Final() && !now.Unreported
}
