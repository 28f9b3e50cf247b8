package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/alike"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/owner"
	"github.com/oncehttp/oncehttp/internal/place"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the looks of a call before its error says that no operation was begun. The call looks for operations under its named keys
// and, without a key, for operations possibly of the same request.

// unbegun makes the errors of calls without a begun operation. It is safe for concurrent use.
type unbegun struct {
	cfg      *Config
	journal  persist.Journal
	holder   *holder
	calls    *inflight.Table[*result]                                    // under way in this process
	notes    *known.Notes                                                // of records missing in the journal
	begins   *known.Begins                                               // of all operations
	earliest func() time.Time                                            // by the journal's clock
	recorded func(ctx context.Context, pick func(persist.ID) bool) error // engine.recorded
	owners   owner.Owners                                                // tells whether a record is the caller's
	places   place.Places                                                // of the records of a key
	alike    *alike.Lookalikes                                           // finds identical requests without a key
	marks    *toldMarks                                                  // note that a caller is told of an end
	refusals *refusals                                                   // make the error about another's record
}

// noRequest returns the error of a call without a request (nil). It looks for an operation under key, if there is one, and tells its end, as the error of any other
// call that begins nothing: the key may have been sent before. There is no request whose context could end the look.
func noRequest(u *unbegun, name, key string) *Error {
	named := request.Named{Account: persist.Account(u.cfg.Account)}
	if key != "" {
		named.Keys = []string{key}
	}
	return u.errorBeforeRead(context.Background(), name, named, errors.New("no request"), ErrConfig)
}

// errorBeforeRead makes the error of a call without a begun operation; cause is the reason: its request could not be read whole or not be taken. The verdict is
// about the operation under a key named by the call. For a request without a key, it is about an unresolved or unreported operation for the same account,
// origin, method and target. If the journal cannot be asked, or failed and left a doubt, the outcome is unknown. why is the sentinel of the error; named may be
// partly filled. This call is in no table of running calls (false).
func (u *unbegun) errorBeforeRead(ctx context.Context, name string, named request.Named, cause, why error) *Error {
	about, busy := u.subjectOfCall(ctx, named, false, cause)
	switch {
	case about.standing == operation.Unclear:
		about.key = namedTo(callKey(u.cfg, &named), intent.HasNotLooked, about.key)
	case named.Unnamed && about.standing == operation.None && named.Origin != "":
		about, busy = u.lookForSimilar(ctx, named, about)
	}
	return newError(name, about, cause, why, busy)
}

// errorAfterRead returns the error of a call that began no operation although its request was read whole: the journal failed, for example. It says what is
// known of an operation under the call's keys. For a call without a key, checkUnresolved must have been called before. why is the sentinel of the error; nil:
// none. inFlight: this very call is in the table of calls in flight, and does not count as another.
func (u *unbegun) errorAfterRead(ctx context.Context, name string, named request.Named, inFlight bool, cause, why error) *Error {
	about, busy := u.subjectOfCall(ctx, named, inFlight, cause)
	if about.standing == operation.Unclear {
		about.key = namedTo(callKey(u.cfg, &named), intent.SeesNothing, about.key)
	}
	return newError(name, about, cause, why, busy)
}

// subjectOfCall returns what the error of a call can say of an operation under its keys. The call itself began none, because of cause. busy
// is ErrAccount if the operation may be another caller's, ErrInFlight if another call runs it, else nil. All keys are watched until the
// last was read: if one is begun anew meanwhile, the state is unclear. So it is after a failed read. inFlight: this very call is in the
// table of running calls.
func (u *unbegun) subjectOfCall(ctx context.Context, named request.Named, inFlight bool, cause error) (about subject, busy error) {
	unlooked := intent.Unlooked{
		Unread: named.Unread && len(named.Keys) == 0, Uncertain: errors.Is(cause, persist.ErrUncertain), Key: callKey(u.cfg, &named),
	}
	switch unlooked.Says() {
	case intent.SaysUnclear:
		return unclear(firstKey(&named)), nil
	case intent.SaysNothing:
		return nothing(firstKey(&named)), nil
	}
	watches := map[persist.ID]known.Watch{} // of all keys, until all were looked at
	for id := range named.IDs() {
		watches[id] = u.begins.Watch(id)
	}
	defer func() {
		for id, watch := range watches {
			if intent.Watched(about.standing, watch.End()) != about.standing {
				about = unclear(id.Key)
			}
		}
	}()
	return u.subjectOfKeys(ctx, &named, inFlight)
}

// subjectOfKeys reads the records of a call's keys, one after the other, and returns what the first that has an operation lets the error say; intent.AtKey
// decides. Keys under no account come last: such an operation may be another caller's. The caller watches the keys meanwhile; inFlight and the results are
// those of subjectOfCall.
func (u *unbegun) subjectOfKeys(ctx context.Context, named *request.Named, inFlight bool) (about subject, busy error) {
	first := firstKey(named)
	for id := range named.IDs() {
		at, rec := u.lookAtKey(ctx, named, id, inFlight)
		switch at.Says() {
		case intent.SaysAnothers:
			return u.refusals.stranger(ctx, id), ErrAccount
		case intent.SaysBusy:
			return unclear(id.Key), ErrInFlight
		case intent.SaysBusyElsewhere:
			return unclearTo(callKey(u.cfg, named), intent.SeesRunning, id.Key), ErrInFlight
		case intent.SaysRecord:
			return u.subjectOfRecord(context.WithoutCancel(ctx), id, &rec), nil
		case intent.SaysUnclear:
			return unclear(id.Key), nil
		}
	}
	id, found, err := u.standsUnassigned(ctx, named)
	at := intent.AtKey{Glance: intent.SeesNone, Strange: found}
	switch {
	case err != nil:
		at.Glance = intent.SeesNothing
	case found: // or it may appear
		at.Glance = intent.SeesOpen
	}
	switch at.Says() {
	case intent.SaysAnothers:
		return u.refusals.stranger(ctx, id), ErrAccount
	case intent.SaysNothing:
		return nothing(first), nil
	}
	return unclear(first), nil
}

// subjectOfRecord returns what the error of a call says of the operation of rec, found under its key. The state is unclear if a person
// began another operation in its place, which took effect or may. So it is if the journal fails, or does not take the note that a caller is
// told of the end.
func (u *unbegun) subjectOfRecord(ctx context.Context, id persist.ID, rec *persist.Record) subject {
	// The record is there: the note of a lost begin, if there is one, ends.
	u.notes.Shown(id)
	by, replaced, err := u.replacement(ctx, rec)
	switch {
	case err != nil:
		return unclear(id.Key)
	case replaced:
		about := unclear(by.key)
		about.state = by.rec.State
		return about
	}
	if u.marks.note(ctx, rec) != nil {
		return unclear(id.Key)
	}
	about, _ := u.refusals.durable(ctx, rec, operation.Unread)
	return about
}

// firstKey returns the first key of a call; "" if it has none so far.
func firstKey(named *request.Named) string {
	if len(named.Keys) == 0 {
		return ""
	}
	return named.Keys[0]
}

// callKey returns the facts by which an error of the call names its key or not: whether the call named it, and whether it was made at
// random.
func callKey(cfg *Config, named *request.Named) intent.CallKey {
	return intent.CallKey{Keyless: named.Keyless, Random: named.Keyless && cfg.randomKeys}
}

// lookAtKey reads the record under one key of a call, with what this process knows beyond the journal: a call that runs it, or a write whose result is unknown.
// Unended: an earlier call has given its answer, and a wait for its record has failed. at is what it found, rec the record if there is one. inFlight: this very
// call is in the table of running calls, and does not count.
func (u *unbegun) lookAtKey(ctx context.Context, named *request.Named, id persist.ID, inFlight bool) (at intent.AtKey, rec persist.Record) {
	at.Unended = u.recorded(ctx, func(other persist.ID) bool { return other == id }) != nil
	// A call of this process with the key knows more than the journal.
	running := u.calls.Operation(id)
	if at.Running = running != nil && !inFlight; at.Running {
		at.Strange = u.owners.IsStrange(ctx, &named.Owner, running)
	}
	if at.Unended || at.Running {
		return at, rec
	}
	rec, err := u.probe(context.WithoutCancel(ctx), id)
	// The record of the base may be of another scope than the call.
	rec, err = u.places.OfCall(ctx, named.Scopes, named.Scoped(), id, rec, err)
	switch at.Glance = glanceAt(&rec, err); {
	case err == nil:
		at.Strange = u.owners.IsStrange(ctx, &named.Owner, &rec)
		at.Keyless, at.Leased = named.Keyless, u.holder.sentElsewhere(&rec)
	case at.Glance == intent.SeesNone:
		at.MayAppear = u.notes.MayAppear(id, u.earliest())
	}
	return at, rec
}

// glanceAt returns what a read of a record shows, such as an ended operation; err is the journal's. Without a record it is SeesNone; after any other error
// SeesNothing, the journal does not say.
func glanceAt(rec *persist.Record, err error) intent.Glance {
	switch {
	case err == nil:
		return intent.GlanceOf(rec)
	case errors.Is(err, persist.ErrNotFound):
		return intent.SeesNone
	}
	return intent.SeesNothing
}

// probe returns the record with this ID. If the journal is a persist.Prober, persist.ErrNotFound also says that
// the key is in no open transaction. Without a Prober, a begin under way elsewhere may be missed.
func (u *unbegun) probe(ctx context.Context, id persist.ID) (persist.Record, error) {
	prober, can := persist.As[persist.Prober](u.journal)
	if !can {
		return u.journal.Get(ctx, id)
	}
	// It waits for a transaction that has the key: what that does is known then.
	if rec, err := prober.Probe(ctx, id); err != nil {
		return rec, err
	}
	return u.journal.Get(ctx, id) // through this journal: a Prober inside it does not name erased records
}

// errorOfBegin returns the error of a call whose operation the journal did not begin, because of err. Nothing was sent. intent.FailedBegin decides whether the
// error says so, and intent.CallKey whether it names the key. The journal was not asked (NotAsked) about an invalid record, with too many notes, or after the
// end of ctx. inFlight: this very call is in the table of running calls, and does not count as another.
func (u *unbegun) errorOfBegin(ctx context.Context, name string, op *preparedRequest, inFlight bool, err error) *Error {
	begin := intent.FailedBegin{
		Uncertain: errors.Is(err, persist.ErrUncertain), Shared: u.holder.journalShared, Key: callKey(u.cfg, &op.named),
		NotAsked: errors.Is(err, persist.ErrInvalid) || errors.Is(err, errTooManyNotes) || ctx.Err() != nil && errors.Is(err, ctx.Err()),
		TooLarge: errors.Is(err, persist.ErrTooLarge),
	}
	if begin.Looks() {
		return u.errorAfterRead(ctx, name, op.named, inFlight, err, troubles[begin.Why()])
	}
	at := intent.SeesNothing
	if begin.NamesByRecord() {
		stands, err := u.journal.Get(context.WithoutCancel(ctx), op.rec.ID)
		at = glanceAt(&stands, err)
	}
	return newError(name, unclearTo(begin.Key, at, op.rec.Key), err)
}

// lookForSimilar returns an unresolved or unreported operation under a key made by NewKey, possibly of the same request; fallback if there is
// none. The request's body or key is not known. The look includes operations under no account. busy is ErrAccount if the operation may be
// another's, and ErrInFlight if another process sends it.
func (u *unbegun) lookForSimilar(ctx context.Context, named request.Named, fallback subject) (about subject, busy error) {
	unassigned := named.Unassigned()
	// Those under no account may be of this caller, from before the program named accounts.
	for _, account := range append([]string{named.Account}, unassigned...) {
		rec, err := u.alike.Similar(ctx, named, account)
		switch {
		case err != nil:
			return unclearTo(unnamed, intent.HasNotLooked, fallback.key), nil
		case rec == nil:
			continue
		}
		return u.subjectOfSimilar(ctx, rec, slices.Contains(unassigned, account) || u.owners.IsStrange(ctx, &named.Owner, rec))
	}
	return fallback, nil
}

// subjectOfSimilar returns what the error of a call without a key says of rec, an operation that may be of the same request: intent.Similar
// decides. strange: it may be another caller's. busy is ErrAccount then, ErrInFlight if another process sends it, else nil.
func (u *unbegun) subjectOfSimilar(ctx context.Context, rec *persist.Record, strange bool) (about subject, busy error) {
	// A note of a lost begin knows a part of the record only, and no revision.
	similar := intent.Similar{Strange: strange, Noted: rec.Revision == 0, Leased: u.holder.sentElsewhere(rec)}
	switch similar.Says() {
	case intent.SaysAnothers:
		return u.refusals.stranger(ctx, rec.ID), ErrAccount
	case intent.SaysUnclear:
		return unclear(rec.Key), nil
	case intent.SaysBusyElsewhere:
		return unclearTo(unnamed, intent.SeesRunning, rec.Key), ErrInFlight
	}
	return subjectOf(rec, operation.Keyless), nil
}

// standsUnassigned looks for an operation with one of the call's keys that was begun before the program named accounts, and so has none. It
// may be this call's. found is false if there is none. Errors: the journal's.
func (u *unbegun) standsUnassigned(ctx context.Context, named *request.Named) (id persist.ID, found bool, err error) {
	if callKey(u.cfg, named).Random { // no operation can have it
		return persist.ID{}, false, nil
	}
	for _, account := range named.Unassigned() {
		for _, key := range named.Keys {
			id := persist.ID{Account: account, Key: key}
			if found, err := u.exists(ctx, id); found || err != nil {
				return id, found, err
			}
		}
	}
	return persist.ID{}, false, nil
}

// errorOfPlace returns the error of a call that could not find out under which account its operation is recorded (its place), because of err. It is not in the
// table of running calls (false). For a call without a named key nobody has looked yet for unresolved operations of the same request.
func (u *unbegun) errorOfPlace(ctx context.Context, name string, op *preparedRequest, err error) *Error {
	failed := intent.FailedPlace{Unnamed: op.named.Unnamed, Forgotten: errors.Is(err, errForgottenBefore)}
	var why error
	if failed.Forgotten {
		why = ErrConfig
	}
	switch failed.Says() {
	case intent.AsFailedBegin:
		return u.errorOfBegin(ctx, name, op, false, err)
	case intent.LooksAtKeys:
		return u.errorAfterRead(ctx, name, op.named, false, err, why)
	}
	return newError(name, unclearTo(unnamed, intent.HasNotLooked, op.rec.Key), err, why)
}

// standsIn reports whether the journal has a record of the operation with this ID. Then a call with its key begins nothing, so that no other operation stands in its way. A
// Begin that is under way, or was lost, is no record: this call may be the one that begins the operation.
func standsIn(ctx context.Context, journal persist.Journal, id persist.ID) bool {
	_, err := journal.Get(context.WithoutCancel(ctx), id)
	return err == nil
}

// exists reports whether there is an operation, also one about to be begun by a call of this process, or by a begin without an answer that may still show (MayAppear).
// Errors: the journal's.
func (u *unbegun) exists(ctx context.Context, id persist.ID) (bool, error) {
	if running, _ := u.calls.Running(id); running || u.notes.MayAppear(id, u.earliest()) {
		return true, nil
	}
	_, err := u.journal.Get(context.WithoutCancel(ctx), id)
	if errors.Is(err, persist.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
