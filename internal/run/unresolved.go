package run

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the looks of a call before its error says that no operation was begun. The call looks for operations under its named keys
// and, without a key, for operations possibly of the same request.

// markReported notes that a caller with the key was told the operation's end. If the mark cannot be cleared, it only refuses a caller
// without a key once more.
func (e *engine) markReported(ctx context.Context, id persist.ID) {
	if err := e.journal.MarkReported(ctx, id); err != nil {
		e.cfg.log(ctx, slog.LevelError, "that an operation was reported could not be recorded", id.Key, err)
	}
}

// noRequest is the error of a call without a request.
func (e *engine) noRequest(name string, key string) *Error {
	named := request.Named{Account: persist.Account(e.cfg.Account)}
	if key != "" {
		named.Keys = []string{key}
	}
	return e.errorBeforeRead(context.Background(), name, named, errors.New("no request"), ErrConfig)
}

// errorBeforeRead makes the error of a call without a begun operation. cause is the reason: its request could not be read whole
// or not be taken. The verdict is about the operation under a key named by the call. For a request without a key, it is about an
// unresolved or unreported operation for the same account, origin, method and target. If the journal cannot be asked, or failed and left
// a doubt, the outcome is unknown.
func (e *engine) errorBeforeRead(ctx context.Context, name string, named request.Named, cause, why error) *Error {
	about, busy := e.subjectOfCall(ctx, named, false, cause)
	switch {
	case named.Keyless && about.standing == operation.Unclear:
		about.key = "" // as in checkUnresolved
	case named.Unnamed && about.standing == operation.None && named.Origin != "":
		about, busy = e.lookForSimilar(ctx, named, about)
	}
	return newError(name, about, cause, why, busy)
}

// errorAfterRead is errorBeforeRead for a request read whole, but still without a begun operation. For a call without a key,
// checkUnresolved must have looked before. inFlight: this very call is in the table of calls in flight.
func (e *engine) errorAfterRead(ctx context.Context, name string, named request.Named, inFlight bool, cause, why error) *Error {
	about, busy := e.subjectOfCall(ctx, named, inFlight, cause)
	if named.Keyless && !e.cfg.randomKeys && about.standing == operation.Unclear {
		about.key = "" // as in errorOfBegin
	}
	return newError(name, about, cause, why, busy)
}

// subjectOfCall looks for an operation under the keys named by a call. The call itself began none, because of cause. busy is
// ErrAccount if the operation may be another's, ErrInFlight if another call runs it, else nil.
func (e *engine) subjectOfCall(ctx context.Context, named request.Named, inFlight bool, cause error) (about subject, busy error) {
	first := ""
	if len(named.Keys) > 0 {
		first = named.Keys[0]
	}
	unread := named.Unread && len(named.Keys) == 0 // the key could not be read, so an operation may exist under it
	switch {
	case unread || errors.Is(cause, persist.ErrUncertain):
		return unclear(first), nil
	case named.Keyless && e.cfg.randomKeys: // a fresh random key: no operation can have it
		return nothing(first), nil
	}
	watches := map[persist.ID]known.Watch{} // of all keys, until all were looked at
	for id := range named.IDs() {
		watches[id] = e.shared.begins.Watch(id)
	}
	defer func() {
		for id, watch := range watches {
			if watch.End() && about.standing == operation.None {
				about = unclear(id.Key)
			}
		}
	}()
	for id := range named.IDs() {
		at, rec := e.lookAtKey(ctx, &named, id, inFlight)
		switch at.Says() {
		case operation.SaysAnothers:
			return e.stranger(ctx, id), ErrAccount
		case operation.SaysBusy:
			return unclear(id.Key), ErrInFlight
		case operation.SaysBusyElsewhere:
			return unclear(""), ErrInFlight
		case operation.SaysRecord:
			e.shared.notes.Shown(id)
			about, _ := e.durable(context.WithoutCancel(ctx), &rec, operation.Unread)
			return about, nil
		case operation.SaysUnclear:
			return unclear(id.Key), nil
		}
	}
	id, found, err := e.standsUnassigned(ctx, &named)
	switch {
	case err != nil:
		return unclear(first), nil
	case found:
		return e.stranger(ctx, id), ErrAccount
	}
	return nothing(first), nil
}

// lookAtKey looks for an operation under one key of a call, and returns its record if it finds one. inFlight as in errorAfterRead.
func (e *engine) lookAtKey(ctx context.Context, named *request.Named, id persist.ID, inFlight bool) (at operation.AtKey, rec persist.Record) {
	at.Unended = e.recorded(ctx, func(other persist.ID) bool { return other == id }) != nil
	running := e.shared.calls.Operation(id)
	if at.Running = running != nil && !inFlight; at.Running {
		at.Strange = e.isStrange(ctx, named, running)
	}
	if at.Unended || at.Running {
		return at, rec
	}
	rec, err := e.probe(context.WithoutCancel(ctx), id)
	rec, err = e.ofCall(ctx, named, id, rec, err)
	switch {
	case err == nil:
		at.Glance, at.Strange = operation.GlanceOf(&rec), e.isStrange(ctx, named, &rec)
		at.Keyless, at.Leased = named.Keyless, e.sentElsewhere(&rec)
	case errors.Is(err, persist.ErrNotFound):
		at.Glance, at.MayAppear = operation.SeesNone, e.shared.notes.MayAppear(id, e.now())
	}
	return at, rec
}

// probe returns the record with this ID. If the journal is a persist.Prober, persist.ErrNotFound means: nobody has begun one in an open
// transaction either.
func (e *engine) probe(ctx context.Context, id persist.ID) (persist.Record, error) {
	prober, can := persist.As[persist.Prober](e.journal)
	if !can {
		return e.journal.Get(ctx, id)
	}
	if rec, err := prober.Probe(ctx, id); err != nil {
		return rec, err
	}
	return e.journal.Get(ctx, id) // the prober may be below
}

// errorOfBegin makes the error of a call if the journal did not begin its operation, because of err: operation.FailedBegin decides.
func (e *engine) errorOfBegin(ctx context.Context, name string, op *preparedRequest, inFlight bool, err error) *Error {
	begin := operation.FailedBegin{
		Uncertain: errors.Is(err, persist.ErrUncertain), Keyless: op.named.Keyless, Random: op.named.Keyless && e.cfg.randomKeys, Shared: e.journalShared,
		NotAsked: errors.Is(err, persist.ErrInvalid) || errors.Is(err, errTooManyNotes) || ctx.Err() != nil && errors.Is(err, ctx.Err()),
	}
	if begin.Looks() {
		why := ErrNotSent
		if errors.Is(err, persist.ErrTooLarge) { // it would be so again
			why = ErrBodyTooLarge
		}
		return e.errorAfterRead(ctx, name, op.named, inFlight, err, why)
	}
	about := unclear(op.rec.Key)
	if !begin.NamesKey(operation.SeesNothing) { // it depends on the record there
		stands, err := e.journal.Get(context.WithoutCancel(ctx), op.rec.ID)
		at := operation.SeesNothing
		switch {
		case err == nil:
			at = operation.GlanceOf(&stands)
		case errors.Is(err, persist.ErrNotFound):
			at = operation.SeesNone
		}
		if !begin.NamesKey(at) {
			about.key = ""
		}
	}
	return newError(name, about, err)
}

// lookForSimilar returns an unresolved or unreported operation under a key made by NewKey, possibly of the same request; fallback if there is
// none. The request's body or key is not known. The look includes operations under no account. busy is ErrAccount if the operation may be
// another's, and ErrInFlight if another process sends it: the key is not told then, see checkUnresolved.
func (e *engine) lookForSimilar(ctx context.Context, named request.Named, fallback subject) (about subject, busy error) {
	unassigned := unassignedOf(&named)
	for _, account := range append([]string{named.Account}, unassigned...) {
		rec, err := e.similar(ctx, named, account)
		switch {
		case err != nil:
			return unclear(""), nil // as in checkUnresolved
		case rec == nil:
			continue
		case slices.Contains(unassigned, account) || e.isStrange(ctx, &named, rec):
			return e.stranger(ctx, rec.ID), ErrAccount
		case rec.Revision == 0: // only noted
			return unclear(rec.Key), nil
		case e.sentElsewhere(rec):
			return unclear(""), ErrInFlight
		}
		return subjectOf(rec, operation.Keyless), nil
	}
	return fallback, nil
}

// sentElsewhere reports whether another process runs an operation. Its call may end it, and then a generated key is forgotten with the
// answer. No error names such a key to a call without a key (invariant 17).
func (e *engine) sentElsewhere(rec *persist.Record) bool {
	return !rec.State.Final() && e.journalShared && e.leasedElsewhere(rec)
}

// similar is lookForSimilar in one account: nil if there is none. Of a lost record, possibly appearing later, only the ID and the owner
// are known. Errors: the journal's.
func (e *engine) similar(ctx context.Context, named request.Named, account string) (*persist.Record, error) {
	rec, err := e.similarGenerated(ctx, named, account, persist.Query{Account: account, AnyUnresolved: true})
	if rec == nil && err == nil && !e.cfg.randomKeys { // NewKey may make keys of the business; they are not in that index
		states := []persist.State{persist.StatePending, persist.StateHeld}
		named.Account = account
		rec, err = e.similarAmong(ctx, persist.Query{Account: account, States: states}, named)
	}
	return rec, err
}

// similarGenerated is similar among the operations under generated keys, selected by query.
func (e *engine) similarGenerated(ctx context.Context, named request.Named, account string, query persist.Query) (*persist.Record, error) {
	like := persist.Record{Origin: named.Origin, Method: named.Method, Target: named.Target}
	if rec, found := e.shared.notes.Like(account, &like, e.now(), notKnown); found {
		return &rec, nil
	}
	named.Account = account
	return e.similarAmong(ctx, query, named)
}

// notKnown is the fingerprint of a request with an unknown body.
func notKnown(string) ([]byte, bool) { return nil, false }

// similarAmong is similar among the operations selected by query.
func (e *engine) similarAmong(ctx context.Context, query persist.Query, named request.Named) (*persist.Record, error) {
	for rec, err := range e.journal.List(context.WithoutCancel(ctx), query) {
		if err == nil {
			err = rec.Sealed()
		}
		switch {
		case err != nil:
			return nil, err
		case e.cfg.reader.Like(named, &rec) && !e.runsUndoubted(&rec) && !e.endedSince(ctx, &rec):
			return &rec, nil
		}
	}
	return nil, nil
}
