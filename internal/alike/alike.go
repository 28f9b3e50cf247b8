// Package alike looks for operations of the same request. A call without a key may begin one only if no operation of its request stands unresolved
// or unreported under a generated key: a loop around Do must not pay twice.
package alike

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Known is the knowledge that the clients of a journal in this process share. The zero value is ready; it is safe for concurrent use.
type Known struct {
	recipes known.Recipes // of the operations possibly repeated by a request without a key
	looks   known.Looks[lookAt, unresolvedNow]
	cleared known.Cleared[lookAt] // if no other process uses the journal
}

// Calls are the calls under way in this process.
type Calls interface {
	// Running reports whether a call runs the operation, and whether the operation was in doubt before.
	Running(id persist.ID) (running, inDoubt bool)
}

// Lookalikes looks for operations of the same request in a journal. Its fields do not change. It is safe for concurrent use.
type Lookalikes struct {
	Journal    persist.Journal
	Shared     bool // other processes may use the journal
	Known      *Known
	Notes      *known.Notes // of records missing in the journal
	Calls      Calls
	Reader     *request.Reader
	RandomKeys bool             // keys are made at random, and not by Config.NewKey
	Earliest   func() time.Time // by the journal's clock
	Patience   time.Duration    // the longest wait for another call's look, which may be in a journal of the user's own
	// Recorded waits until the record of an answer given already agrees with it.
	Recorded func(ctx context.Context, pick func(persist.ID) bool) error
}

// Call is a call that looks for operations of its request.
type Call struct {
	Record *persist.Record // to be begun
	Named  *request.Named
	Read   *request.Snapshot
}

// Of looks for another operation that may be the same request: one under a generated key, unresolved (it has not ended) or unreported (it has, and no caller
// was told). A call without a key of its own must not send such a request a second time. Of returns its record, perhaps without request and answer; nil if
// there is none.
//
// It looks in the account of the call, and among the operations without an account. A wait for the same search by another call ends with ctx; a
// search of its own does not. Errors: the journal's, and the cause of ctx.
func (l *Lookalikes) Of(ctx context.Context, call Call) (*persist.Record, error) {
	l.Known.recipes.Use(call.Record.Recipe)
	for _, account := range append([]string{call.Named.Account}, call.Named.Unassigned()...) {
		if rec := l.lost(ctx, call, account); rec != nil {
			return rec, nil
		}
		look := l.here
		if l.Shared {
			look = l.anywhere
		}
		if rec, err := look(ctx, call, account); rec != nil || err != nil {
			return rec, err
		}
	}
	return nil, nil
}

// lost does the search of Of among the operations that this process has begun with an unknown result: the journal does not have them, and may have them
// later. After some time none appears any more; l.Earliest is now, or a little earlier, by the journal's clock. Of such a record only the ID and the owner
// are known. Once the journal has the record, its note is removed, and the other searches find it. A call with the key that the error names clears the doubt.
func (l *Lookalikes) lost(ctx context.Context, call Call, account string) *persist.Record {
	for {
		rec, found := l.Notes.Like(account, call.Record, l.Earliest(), call.Read.FingerprintBy)
		if !found {
			return nil
		}
		if _, err := l.Journal.Get(context.WithoutCancel(ctx), rec.ID); err != nil {
			return &rec
		}
		l.Notes.Shown(rec.ID) // it is in the lists
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
	recs []*listed
}

// listed is an operation as a look has found it. Its record does not change.
type listed struct {
	rec   persist.Record
	asked int // how often a caller has asked for its present state; guarded by lookalikes.mu
}

// next returns one of the operations for which stands is true (it would stop a call): the one that callers were given least often; nil if there is none. left is the
// number of all operations in the list, also of those for which stands is false.
func (a *lookalikes) next(stands func(*persist.Record) bool) (next *listed, left int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.recs {
		if (next == nil || one.asked < next.asked) && stands(&one.rec) {
			next = one
		}
	}
	if next != nil {
		next.asked++
	}
	return next, len(a.recs)
}

// drop removes an operation that has ended; another caller may have done so before.
func (a *lookalikes) drop(ended *listed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recs = slices.DeleteFunc(a.recs, func(one *listed) bool { return one == ended })
}

// here does the search of Of in a journal of this process alone: by an index, for each existing recipe (the rule of a fingerprint). It remembers contents
// without unresolved operations (cleared; not if a doubt was noted during the search), and searches for them again only after Doubted has named them.
func (l *Lookalikes) here(ctx context.Context, call Call, account string) (*persist.Record, error) {
	recipes, known := l.Known.recipes.Of(account)
	if !known {
		all, err := l.unresolved(ctx, lookAt{account: account})
		if err != nil {
			return nil, err
		}
		l.Known.recipes.Read(account, all.recipes())
		recipes = append(recipes, all.recipes()...)
	}
	for _, recipe := range recipes {
		sum, known := call.Read.FingerprintBy(recipe)
		if !known {
			if rec, err := l.compareEach(ctx, call, account, recipe); rec != nil || err != nil {
				return rec, err
			}
			continue
		}
		at := lookAt{account, recipe, string(sum)}
		if l.Known.cleared.Has(at) {
			continue
		}
		doubts := l.Known.cleared.Doubts()
		found, err := l.unresolved(ctx, at)
		if err != nil {
			return nil, err
		}
		rec, none := l.standing(ctx, found[content{recipe, string(sum)}], call)
		if rec != nil {
			return rec, nil
		}
		if none {
			l.Known.cleared.Clear(at, doubts)
		}
	}
	return nil, nil
}

// Doubted notes that an operation may be unresolved from now on, so that the next search for its contents reads the journal again. It must be called
// before a caller can learn of the doubt: else a call of the same request would rely on an earlier search. Only operations under generated keys are
// searched for by contents.
func (l *Lookalikes) Doubted(rec *persist.Record) {
	if rec.Generated {
		l.Known.cleared.Doubt(lookAt{request.Base(rec.Account), rec.Recipe, string(rec.Fingerprint)})
	}
}

// Assigned is called for an operation that was assigned to an account. It does the work of Doubted, and notes the recipe, the rule of its
// fingerprint, which may be new in the account.
func (l *Lookalikes) Assigned(rec *persist.Record) {
	l.Doubted(rec)
	l.Known.recipes.Use(rec.Recipe)
}

// anywhere does the search of Of in a journal that other processes use. These may have begun operations by other recipes (the rules of fingerprints), so it reads
// all unresolved operations of the account, and compares the request by each recipe among them.
func (l *Lookalikes) anywhere(ctx context.Context, call Call, account string) (*persist.Record, error) {
	all, err := l.unresolved(ctx, lookAt{account: account})
	if err != nil {
		return nil, err
	}
	for _, recipe := range all.recipes() {
		var rec *persist.Record
		if sum, known := call.Read.FingerprintBy(recipe); known {
			rec, _ = l.standing(ctx, all[content{recipe, string(sum)}], call)
		} else {
			rec, err = l.compareEach(ctx, call, account, recipe)
		}
		if rec != nil || err != nil {
			return rec, err
		}
	}
	return nil, nil
}

// unresolved returns the unresolved operations selected by at. Without a fingerprint, at selects all of the account. Callers with the same at at the same time
// share one look and its result, so the result may be changed only by the methods of its lookalikes. It leaves out operations run by a call of this process
// without an earlier doubt. After an error there is no result. No lock is held meanwhile, since a journal may be the program's own code (Invariant 39).
func (l *Lookalikes) unresolved(ctx context.Context, at lookAt) (unresolvedNow, error) {
	return l.Known.looks.Share(ctx, l.Patience, at, func(ctx context.Context) (unresolvedNow, error) {
		query := persist.Query{Account: at.account, AnyUnresolved: at.fingerprint == ""}
		if at.fingerprint != "" {
			query.Unresolved = []byte(at.fingerprint)
		}
		found := unresolvedNow{}
		for rec, err := range l.Journal.List(ctx, query) {
			if err == nil {
				err = rec.Sealed() // it cannot be read here, and may be the one
			}
			switch {
			case err != nil:
				return nil, err
			case request.InAccount(&rec, at.account) && isInTheWay(&rec, intent.Lookalike{Undoubted: l.RunsUndoubted(&rec)}):
				found.add(&rec)
			}
		}
		return found, nil
	})
}

// add adds the parts of a record that the search needs: no request, no answer. Only the search itself calls it, before others have u.
func (u unresolvedNow) add(rec *persist.Record) {
	of := content{rec.Recipe, string(rec.Fingerprint)}
	if u[of] == nil {
		u[of] = &lookalikes{}
	}
	u[of].recs = append(u[of].recs, &listed{rec: persist.Record{
		ID: rec.ID, Generated: rec.Generated, Business: rec.Business, Credentials: rec.Credentials, Scopes: rec.Scopes, State: rec.State, HoldReason: rec.HoldReason, MaybeSent: rec.MaybeSent, Unreported: rec.Unreported,
		Attempts: rec.Attempts, Sends: rec.Sends, Status: rec.Status, LeaseOwner: rec.LeaseOwner, LeaseUntil: rec.LeaseUntil,
	}})
}

// recipes returns the recipes of the operations: the rules by which their fingerprints were made.
func (u unresolvedNow) recipes() (recipes []string) {
	for of := range u {
		if !slices.Contains(recipes, of.recipe) {
			recipes = append(recipes, of.recipe)
		}
	}
	return recipes
}

// standing returns a copy of one operation of the list like (operations that may be of the call's request), if it has not ended since the listing,
// has another key than the call's, and no other scope; nil if there is none. none is true if not even one with the call's own key is left: that one
// Begin finds. like may be nil. Ended operations are removed from like, for all callers. Several callers get different operations, as far as there
// are some.
func (l *Lookalikes) standing(ctx context.Context, like *lookalikes, call Call) (rec *persist.Record, none bool) {
	if like == nil {
		return nil, true
	}
	for {
		one, left := like.next(func(rec *persist.Record) bool {
			return isInTheWay(rec, intent.Lookalike{OwnKey: rec.Key == call.Record.Key, OtherScope: call.Read.OtherScope(rec)})
		})
		if one == nil {
			return nil, left == 0
		}
		standing := one.rec
		if !l.endedSince(context.WithoutCancel(ctx), &standing) {
			return &standing, false
		}
		like.drop(one)
	}
}

// compareEach does the search of Of without an index: it reads all unresolved records of the account, and compares those of one recipe, the rule by which their
// fingerprints were made. It is called only after a change of configuration: this request cannot be fingerprinted by that recipe. One that cannot be compared
// counts as the same.
func (l *Lookalikes) compareEach(ctx context.Context, call Call, account, recipe string) (*persist.Record, error) {
	ctx = context.WithoutCancel(ctx)
	for rec, err := range l.Journal.List(ctx, persist.Query{Account: account, AnyUnresolved: true}) {
		switch {
		case err != nil:
			return nil, err
		case !request.InAccount(&rec, account) || rec.Recipe != recipe || !isInTheWay(&rec, intent.Lookalike{OwnKey: rec.Key == call.Record.Key, Undoubted: l.RunsUndoubted(&rec)}):
			continue
		case call.Read.Compare(&rec) != request.OtherRequest && !l.endedSince(ctx, &rec):
			return &rec, nil
		}
	}
	return nil, nil
}

// RunsUndoubted reports whether a call of this process runs the unfinished operation now, and nothing was in doubt before that call. Such a call
// tells its callers the end, so the operation stops no other call.
func (l *Lookalikes) RunsUndoubted(rec *persist.Record) bool {
	running, inDoubt := l.Calls.Running(rec.ID)
	return running && !inDoubt && !rec.State.Final()
}

// endedSince reports whether an operation has ended since it was listed as unfinished, and its callers know the
// end. One that was listed as ended is unreported, and returns false. It waits for the record of an answer given already: a call writes its record a moment
// after its answer. If the end cannot be known, it returns false; and so for one whose end no caller was told. It sets the lease in listed as it is now.
func (l *Lookalikes) endedSince(ctx context.Context, listed *persist.Record) bool {
	if listed.State.Final() || l.Recorded(ctx, func(id persist.ID) bool { return id == listed.ID }) != nil {
		return false
	}
	now, err := l.Journal.Get(context.WithoutCancel(ctx), listed.ID)
	if err == nil {
		listed.LeaseOwner, listed.LeaseUntil = now.LeaseOwner, now.LeaseUntil
	}
	return err == nil && now.State.Final() && !isInTheWay(&now, intent.Lookalike{})
}

// isInTheWay reports whether an operation under a generated key stops a call of the same request without a named key. like has the facts outside the record: the call's
// own key, another scope, or a call of this process that runs it without a doubt (Undoubted).
func isInTheWay(rec *persist.Record, like intent.Lookalike) bool {
	op := operation.OpOf(rec, 0) // 0: the record's own window counts
	return like.InTheWay(&op) != intent.NotInTheWay
}
