package run

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the look for operations of the same request under generated keys, made before a call without a named key begins one.

// An operation under a generated key is unresolved while it is unfinished. It is unreported once Resume or Run ended it, until a caller
// with its key was told the end. Meanwhile the same request without a key might take effect for the second time.
var (
	errUnresolved = errors.New("the same request was sent before under this generated key; send it with this key, settle it or abandon it")
	errSending    = errors.New("another process is sending the same request under a key that it generated; send it again once that has ended, or name a key of the business")
	errUnreported = errors.New("the same request was sent before under this generated key, and Resume or Run ended it; ask for its answer with this key")
)

// checkUnresolved stops a call without a named key if the same request, under a generated key, is unresolved or unreported. A loop around
// Do must not pay twice, and neither must a loop with business keys made by Config.NewKey only from now on. The look uses the recipe of
// every possible operation, since another version, profile or configuration may have begun it.
func (e *engine) checkUnresolved(ctx context.Context, name string, op *preparedRequest) error {
	look := context.WithoutCancel(ctx)
	standing, err := e.lookalike(look, op)
	if err != nil { // it names no key made by NewKey: with such a key, a caller would begin a second operation beside one possibly there
		return newError(name, unclear(""), err)
	}
	if standing == nil {
		return nil
	}
	if !op.rec.Generated || op.rec.Business { // under its own key the operation may be there already, and then nothing is begun
		if exists, err := e.exists(look, op.rec.ID); err == nil && exists {
			return nil
		}
	}
	switch none := slices.Contains(unassignedOf(&op.named), request.Base(standing.Account)); {
	case none:
		return e.strangerError(ctx, name, standing.ID, e.unassignedCause(ctx, standing.ID, op.rec.Account))
	case e.strangeLookalike(look, op, standing):
		return e.strangerError(ctx, name, standing.ID, errOtherCredentials)
	}
	cause, like := errUnresolved, operation.OpOf(standing, 0)
	switch like.InTheWay(operation.Lookalike{Leased: e.sentElsewhere(standing)}) {
	case operation.NotInTheWay:
		return nil
	case operation.Unreported:
		cause = errUnreported
	case operation.SentElsewhere:
		return newError(name, unclear(""), errSending, ErrInFlight)
	}
	failed := newError(name, subjectOf(standing, operation.Keyless), cause)
	failed.Attempts, failed.Sends = standing.Attempts, standing.Sends
	return failed
}

// strangeLookalike reports whether a lookalike may be another caller's. standing is only a part of its record.
func (e *engine) strangeLookalike(ctx context.Context, op *preparedRequest, standing *persist.Record) bool {
	if !op.strange(standing) {
		return false
	}
	rec, err := e.journal.Get(ctx, standing.ID) // only it has in clear a value that is a credential only now
	return err != nil || op.strange(&rec)
}

// lookalike returns an unresolved or unreported operation under a generated key, possibly of the same request; nil if there is
// none. Errors: the journal's.
func (e *engine) lookalike(ctx context.Context, op *preparedRequest) (*persist.Record, error) {
	e.shared.recipes.Use(op.rec.Recipe)
	for _, account := range append([]string{op.named.Account}, unassignedOf(&op.named)...) {
		if rec := e.lostLookalike(ctx, op, account); rec != nil {
			return rec, nil
		}
		look := e.lookalikeHere
		if e.journalShared {
			look = e.lookalikeAnywhere
		}
		if rec, err := look(ctx, op, account); rec != nil || err != nil {
			return rec, err
		}
	}
	return nil, nil
}

// lostLookalike is lookalike among operations begun by this process and missing in the journal, but possibly appearing there later.
// A call with the key named in the error clears the doubt.
func (e *engine) lostLookalike(ctx context.Context, op *preparedRequest, account string) *persist.Record {
	for {
		rec, found := e.shared.notes.Like(account, op.rec, e.now(), op.read.FingerprintBy)
		if !found {
			return nil
		}
		if _, err := e.journal.Get(ctx, rec.ID); err != nil {
			return &rec
		}
		e.shared.notes.Shown(rec.ID) // it is in the lists
	}
}

// lookAt selects unresolved operations of an account: those of a recipe with a fingerprint, or all of them if both are empty.
type lookAt struct{ account, recipe, fingerprint string }

// content is a request by a recipe.
type content struct{ recipe, fingerprint string }

// unresolvedNow are the unresolved operations found by one look.
type unresolvedNow map[content]*lookalikes

// lookalikes are operations of the same request, without their requests and answers. It is safe for concurrent use.
type lookalikes struct {
	mu   sync.Mutex
	recs []persist.Record
}

// lookalikeHere is lookalike in a journal used by this process only: by an index, for each existing recipe.
func (e *engine) lookalikeHere(ctx context.Context, op *preparedRequest, account string) (*persist.Record, error) {
	recipes, known := e.shared.recipes.Of(account)
	if !known {
		all, err := e.unresolved(ctx, lookAt{account: account})
		if err != nil {
			return nil, err
		}
		e.shared.recipes.Read(account, all.recipes())
		recipes = append(recipes, all.recipes()...)
	}
	for _, recipe := range recipes {
		sum, known := op.read.FingerprintBy(recipe)
		if !known {
			if rec, err := e.compareEach(ctx, op, account, recipe); rec != nil || err != nil {
				return rec, err
			}
			continue
		}
		at := lookAt{account, recipe, string(sum)}
		if e.shared.cleared.Has(at) {
			continue
		}
		doubts := e.shared.cleared.Doubts()
		found, err := e.unresolved(ctx, at)
		if err != nil {
			return nil, err
		}
		rec, none := e.standing(ctx, found[content{recipe, string(sum)}], op)
		if rec != nil {
			return rec, nil
		}
		if none {
			e.shared.cleared.Clear(at, doubts)
		}
	}
	return nil, nil
}

// doubted notes a new doubt: an operation may be unresolved from now on, although nothing was unresolved of its request before.
func (e *engine) doubted(rec *persist.Record) {
	if rec.Generated {
		e.shared.cleared.Doubt(lookAt{request.Base(rec.Account), rec.Recipe, string(rec.Fingerprint)})
	}
}

// lookalikeAnywhere is lookalike in a journal used by other processes, too: they may have begun operations by other recipes.
func (e *engine) lookalikeAnywhere(ctx context.Context, op *preparedRequest, account string) (*persist.Record, error) {
	all, err := e.unresolved(ctx, lookAt{account: account})
	if err != nil {
		return nil, err
	}
	for _, recipe := range all.recipes() {
		var rec *persist.Record
		if sum, known := op.read.FingerprintBy(recipe); known {
			rec, _ = e.standing(ctx, all[content{recipe, string(sum)}], op)
		} else {
			rec, err = e.compareEach(ctx, op, account, recipe)
		}
		if rec != nil || err != nil {
			return rec, err
		}
	}
	return nil, nil
}

// unresolved looks at the unresolved operations of an account. Callers with the same lookAt at the same time share one look. It leaves out
// operations run by a call of this process without a doubt from before.
func (e *engine) unresolved(ctx context.Context, at lookAt) (unresolvedNow, error) {
	return e.shared.looks.Share(at, func() (unresolvedNow, error) {
		query := persist.Query{Account: at.account, AnyUnresolved: at.fingerprint == ""}
		if at.fingerprint != "" {
			query.Unresolved = []byte(at.fingerprint)
		}
		found := unresolvedNow{}
		for rec, err := range e.journal.List(ctx, query) {
			if err == nil {
				err = rec.Sealed()
			}
			switch {
			case err != nil:
				return nil, err
			case request.InAccount(&rec, at.account) && isInTheWay(&rec, operation.Lookalike{Undoubted: e.runsUndoubted(&rec)}):
				found.add(&rec)
			}
		}
		return found, nil
	})
}

// add adds an operation without its request and answer.
func (u unresolvedNow) add(rec *persist.Record) {
	of := content{rec.Recipe, string(rec.Fingerprint)}
	if u[of] == nil {
		u[of] = &lookalikes{}
	}
	u[of].recs = append(u[of].recs, persist.Record{
		ID: rec.ID, Generated: rec.Generated, Business: rec.Business, Credentials: rec.Credentials, Scopes: rec.Scopes, State: rec.State, HoldReason: rec.HoldReason, MaybeSent: rec.MaybeSent, Unreported: rec.Unreported,
		Attempts: rec.Attempts, Sends: rec.Sends, Status: rec.Status, LeaseOwner: rec.LeaseOwner, LeaseUntil: rec.LeaseUntil,
	})
}

// recipes returns the recipes of the operations.
func (u unresolvedNow) recipes() (recipes []string) {
	for of := range u {
		if !slices.Contains(recipes, of.recipe) {
			recipes = append(recipes, of.recipe)
		}
	}
	return recipes
}

// standing returns one of the operations not ended since the listing, with another key than the call's and no other scope; nil if there is
// none. An operation under the same key, given again by a deterministic NewKey, is found by Begin. none is true if there is not even one
// of the call's own key. like may be nil. Ended operations are looked at once for all callers.
func (e *engine) standing(ctx context.Context, like *lookalikes, op *preparedRequest) (rec *persist.Record, none bool) {
	if like == nil {
		return nil, true
	}
	like.mu.Lock()
	defer like.mu.Unlock()
	for i := 0; i < len(like.recs); {
		rec := &like.recs[i]
		switch {
		case !isInTheWay(rec, operation.Lookalike{OwnKey: rec.Key == op.rec.Key, OtherScope: op.read.OtherScope(rec)}):
			i++
		case e.endedSince(ctx, rec):
			last := len(like.recs) - 1
			like.recs[i] = like.recs[last]
			like.recs = like.recs[:last]
		default:
			standing := *rec
			return &standing, false
		}
	}
	return nil, len(like.recs) == 0
}

// compareEach is lookalike among the operations of one recipe. This recipe counts parts left out by this request, or it is of a later
// version. It is called only after a change of configuration.
func (e *engine) compareEach(ctx context.Context, op *preparedRequest, account, recipe string) (*persist.Record, error) {
	for rec, err := range e.journal.List(ctx, persist.Query{Account: account, AnyUnresolved: true}) {
		switch {
		case err != nil:
			return nil, err
		case !request.InAccount(&rec, account) || rec.Recipe != recipe || rec.Key == op.rec.Key || e.runsUndoubted(&rec):
			continue
		case op.read.Compare(&rec) != request.OtherRequest && !e.endedSince(ctx, &rec):
			return &rec, nil
		}
	}
	return nil, nil
}

// runsUndoubted reports whether a call of this process runs the operation now, and nothing was in doubt before that call.
func (e *engine) runsUndoubted(rec *persist.Record) bool {
	running, inDoubt := e.shared.calls.Running(rec.ID)
	return running && !inDoubt && !rec.State.Final()
}

// endedSince reports whether an operation has ended since it was listed as unfinished, and its callers know the end. A call writes its
// record a moment after giving its answer. It may have done so between the look at the journal and the look at the calls in flight.
// Or it keeps another call with the key waiting for this write. If the end cannot be known, the listing counts. endedSince sets in listed
// the lease as it is now.
func (e *engine) endedSince(ctx context.Context, listed *persist.Record) bool {
	if listed.State.Final() || e.recorded(ctx, func(id persist.ID) bool { return id == listed.ID }) != nil {
		return false
	}
	now, err := e.journal.Get(context.WithoutCancel(ctx), listed.ID)
	if err == nil {
		listed.LeaseOwner, listed.LeaseUntil = now.LeaseOwner, now.LeaseUntil
	}
	return err == nil && now.State.Final() && !isInTheWay(&now, operation.Lookalike{})
}

// isInTheWay reports whether an operation under a generated key stops a call of the same request without a named key.
func isInTheWay(rec *persist.Record, like operation.Lookalike) bool {
	op := operation.OpOf(rec, 0)
	return op.InTheWay(like) != operation.NotInTheWay
}
