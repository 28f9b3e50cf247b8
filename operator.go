package oncehttp

import (
	"context"
	"iter"
	"time"

	"github.com/oncehttp/oncehttp/internal/run"
	"github.com/oncehttp/oncehttp/persist"
)

// Unfinished yields the unfinished operations of this account, pending and held,
// oldest first. It first waits for the records of earlier answers; if ctx ends
// before, it yields the cause as an error. In a journal opened without its keys a
// sealed operation has only its clear fields: see persist.Record.Sealed. LeaseOwner
// is as in Lookup.
func (c *Client) Unfinished(ctx context.Context) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		c.inner().Unfinished(ctx)(func(rec persist.Record, err error) bool { return yield(rec, errorOf(err)) })
	}
}

// LookupOption selects the operation of Lookup, Settle, Abandon, Assign, Rekey, Redrive and Unsettle, or
// adds to their record.
type LookupOption func(*chosen)

// chosen collects the options.
type chosen struct{ run.Chosen }

// OfAccount selects the operation of this account, spelled as in
// persist.Record.Account or, with the headers that select an account, as in
// persist.Record.ScopedAccount. It is needed where such headers (AccountHeaders of a
// profile, as Stripe-Account) make several operations of one key. An account of
// another client is never found.
func OfAccount(account string) LookupOption {
	return func(c *chosen) { c.Account = &account }
}

// WithNote writes a note for operators, such as the reason, into the record ended by
// Settle or Abandon. See Resolution.Note.
func WithNote(note string) LookupOption {
	return func(c *chosen) { c.Note = note }
}

// Undo lets Abandon ask the API to undo the operation. See Abandon.
func Undo() LookupOption {
	return func(c *chosen) { c.Undo = true }
}

// AsSeen binds Settle, Abandon, Rekey or Assign to the operation as a person saw it:
// rec comes from Lookup or Unfinished, or was given to Config.Reconcile. If the
// operation has moved since, nothing changes, and the error matches ErrStale. It has
// moved if State, HoldReason, MaybeSent, Sends or Drives differ, or if it was being
// sent when it was seen. Writes of the same act do not move it: the hold of this
// Rekey, the hold of this Abandon with Undo, and, for Rekey, the Settle as absent
// before it. AsSeen implies OfAccount(rec.Account).
func AsSeen(rec persist.Record) LookupOption {
	seen := run.SeenIn(&rec)
	return func(c *chosen) { c.Seen = seen }
}

// InRun names the run of a redrive in bulk in the records begun by Redrive
// (persist.Record.RedriveRun), so that the run can be told apart, and goes on after a
// crash. At most persist.RedriveRunBytesMax.
func InRun(id string) LookupOption {
	return func(c *chosen) { c.Run = id }
}

// Untold lets Redrive refuse an operation if a caller may have been told of its end: only
// one begun by Enqueue, or in a transaction, that ended under Resume or Run is redriven,
// and only if no call of Do, Transport or Enqueue has asked for its end since, no client
// with Config.OnResult has begun it, and no settlement of it was taken back. Of the next
// generations it looks at the nearest 5 only. A program that acts on Lookup, Observe or the
// journal itself is not seen: it must not use this.
func Untold() LookupOption {
	return func(c *chosen) { c.Untold = true }
}

// choose applies the options. Of two of a kind the later one counts.
func choose(options []LookupOption) run.Chosen {
	var c chosen
	for _, option := range options {
		if option != nil {
			option(&c)
		}
	}
	return c.Chosen
}

// Lookup returns the record of a key of this account, after the records of earlier
// answers are written. LeaseOwner is set exactly if the operation is being sent, or has a
// lease that lasts. See AsSeen.
//
// Every error matches ErrOutcomeUnknown. Errors: persist.ErrNotFound; the cause of
// ctx; persist.ErrSealed for a sealed operation in a journal opened without its keys;
// ErrConfig if several scoped accounts have an operation of this key, and there is no
// OfAccount: the error names them.
func (c *Client) Lookup(ctx context.Context, key Key, options ...LookupOption) (persist.Record, error) {
	rec, err := c.inner().Lookup(ctx, string(key), choose(options))
	return rec, errorOf(err)
}

// Settle records the effect of an operation in doubt.
//   - EffectHappened: it took effect. Later calls get r.Answer, or ErrFinal without
//     one. Their outcome is OutcomeConfirmed, also with an answer that is a 4xx.
//   - EffectAbsent: it did not, and never will. This is final: later calls get
//     ErrNoEffect, and the business goes on with Key.Generation. It needs AsSeen,
//     since a worker may send the operation after the look.
//   - EffectUnknown changes nothing.
//
// Settle refuses an absence until persist.Record.SendUntil while a process without its
// lease may still have a send on its way. An operation sealed with a missing key can be
// abandoned without a note (Abandon), and not settled.
//
// Errors: those of Lookup; ErrStale, as in AsSeen, and for an absence against an event of
// the API (persist.Record.Evidence); ErrInFlight while another call of any
// process runs the operation, or a send may be on its way; for an ended operation
// ErrFinal, ErrNoEffect with ErrSettled (settled as absent), or ErrOutcomeUnknown with
// ErrAbandoned; ErrConfig for an absence without AsSeen, an effect that is none of the
// three, such as EffectRefused, a note over persist.NoteBytesMax, and an answer that is not
// final (2xx, 303, 4xx) or over Config.MaxResponseBytes.
func (c *Client) Settle(ctx context.Context, key Key, r Resolution, options ...LookupOption) error {
	return errorOf(c.inner().Settle(ctx, string(key), r.inner(), choose(options)))
}

// Abandon ends the sends of an operation. It proves nothing of the effect: the key stays
// spent. It accepts AsSeen. Errors: as Settle.
//
// With Undo, and with a Cancel in the profile, Abandon asks the API to undo the
// operation. It first holds the record (persist.HoldUndo), so that nothing more is sent.
// After a 2xx of the API the record is abandoned, and its note begins with "undo
// answered" and the status. Even that proves no absence: an API may answer so without
// having found anything, and a late send may still arrive. An operation without a send
// needs no undo.
//
// More errors with Undo: ErrConfig if the profile has no Cancel, or the credentials are
// missing and there is no Config.Authorize; then nothing has changed. After any other
// answer, or none, the error matches ErrHeld, and the record stays held, as it does after
// a crash: nothing sends it, and Config.Reconcile is not asked, until an operator
// abandons it again, with or without Undo, or settles it. Unfinished lists it.
func (c *Client) Abandon(ctx context.Context, key Key, options ...LookupOption) error {
	return errorOf(c.inner().Abandon(ctx, string(key), choose(options)))
}

// Assign moves an operation without an account to the account of ctx
// (ContextWithAccount), or else to Config.Account. key is its key, or Error.Reference of
// an error that matches ErrAccount. "Without an account" means the unnamed account and,
// for a ctx with an account, Config.Account. Scopes made by headers stay. From then on
// calls of the account go on with the operation, in any state, and the key is free at
// its old place. Assign accepts AsSeen.
//
// Errors: those of Lookup, with persist.ErrNotFound if the operation was assigned before;
// ErrInFlight while another call of any process runs the
// operation; ErrKeyReused if the account has an operation of this key; ErrConfig if
// neither ctx nor the client has an account, if several operations of the key have none
// and there is no OfAccount, or if operations of other scopes exist beside it.
func (c *Client) Assign(ctx context.Context, key Key, options ...LookupOption) error {
	return errorOf(c.inner().Assign(ctx, string(key), choose(options)))
}

// Rekey begins an operation without effect again, under newKey: the same request, sent by
// Resume or Run within Config.EnqueueMaxAge, as after Enqueue. The new record has the old
// key (persist.Record.Replaces), and reason as its note; reason must not be empty. The
// best newKey is the key of the next try of the business, Key.Generation: then both mean
// one operation. Rekey needs AsSeen, with the record from before the Settle as absent, or
// from after it.
//
// The operation must be settled as absent, with one exception. If the profile bounds the
// time after which its lookup is complete (profile.Reference.FoundWithin), Rekey settles
// an unfinished operation itself. It holds the operation, so that nothing more is sent.
// It waits until no send can be on its way (persist.Record.SendUntil), and for that time
// of the profile. Then it asks the API. If the API finds nothing of the request's reference,
// the operation is settled as absent; else the operation is as before, and the error has
// the finding. The lookup needs the credentials of Config.Authorize.
//
// The end of ctx leaves the operation held, and the same Rekey goes on with it. If that
// one finds something, a pending operation is pending again, and a held one is held with
// persist.HoldUnclear: use Settle. Until the same Rekey is called again, or a person
// settles or abandons the operations, they stay held (persist.HoldRekey, HoldRekeyHeld):
// nothing sends them, and Config.Reconcile is not asked.
//
// A new operation in place of one with a generated key counts as one, too: the same
// request without a key is refused while the new operation is unresolved.
//
// A second Rekey with the same keys returns nil while the new operation goes on, and
// after it took place; one held because it was never sent in time is sent now.
//
// Errors: those of Lookup for key; ErrStale, as in AsSeen, and if an event of the API proves
// the operation; ErrConfig without AsSeen, for
// an unusable reason or newKey, and if the journal no longer has the request or the
// request itself contains its key; ErrOutcomeUnknown while the operation is not settled,
// with ErrInFlight while a call runs it, with ErrHeld while it is held; ErrFinal, or
// ErrOutcomeUnknown with ErrAbandoned, if it ended otherwise; ErrKeyReused if newKey
// belongs to another operation, if the operation goes on under a third key, named by
// the error, or if an operation before it stands against it, as for Redrive; ErrAccount if
// Assign has given the new operation to an account since. If the new operation ended without an effect, was abandoned, or is held for
// another reason, the errors are those of Enqueue with newKey.
func (c *Client) Rekey(ctx context.Context, key, newKey Key, reason string, options ...LookupOption) error {
	return errorOf(c.inner().Rekey(ctx, string(key), string(newKey), reason, choose(options)))
}

// Redrive begins a refused operation once more, or one settled as absent: the same
// request under its next generation (Key.Generation), sent by Resume or Run within
// Config.EnqueueMaxAge, as after Enqueue. It returns the new key. It is for a refusal by
// mistake, such as the 404 of a wrong route. The new record names the old key
// (persist.Record.Replaces), and the old record the new one (persist.Record.ReplacedBy).
// Redrive accepts AsSeen, OfAccount, WithNote (of the new record), InRun and Untold.
//
// A repeated call, also after a crash, begins nothing more, and returns nil while its
// operation stands. Of a Redrive, a Rekey and an Unsettle of one operation at once, one at
// most succeeds; of a Redrive and a Do of the next generation, too. A Do of the next
// generation after a Rekey to another key is ErrKeyReused. While an event of the API proves
// the old operation, the new one is held (persist.HoldPredecessor).
//
// A caller told of the refusal may begin the operation once more by itself. Under the next
// generation both mean one operation; under another key there are two. See Untold.
//
// Errors: those of Lookup; ErrStale, as in AsSeen; ErrInFlight while a call runs the
// operation, or a process that lost its lease may be sending it; ErrKeyReused if another
// operation has replaced it: one begun by Rekey, or one of the next generations, of
// which the nearest 16 are looked for. The error names it. ErrKeyReused, too, if a Rekey has
// begun another key in the place of an operation before it (an earlier generation, or what a
// Redrive or a Rekey has named), or if an event of the API proves one of those. For an
// operation under no account a next generation under any account counts. ErrAccount if Assign
// has given the new operation to an account since.
// ErrConfig if the API does not take the new key, if the journal no longer has the request,
// or if the request itself contains its key. Where a request names an account by a header
// (profile.Profile.AccountHeaders), the generations of its own account count: another account
// may have the same keys. For an operation that ended otherwise the verdict is as of its
// end: one that was mismatched, abandoned or took effect is never redriven. ErrOutcomeUnknown for an unfinished operation, and after a failure of the journal.
func (c *Client) Redrive(ctx context.Context, key Key, options ...LookupOption) (Key, error) {
	next, err := c.inner().Redrive(ctx, string(key), choose(options))
	return Key(next), errorOf(err)
}

// Unsettle takes a settlement back: of Settle, or of Config.Reconcile. The operation is
// held again (persist.HoldReopened), and never pending: nothing sends it, and
// Config.Reconcile is not asked, until a person ends it. reason must not be empty. The
// settlement and the reason stay in the record (persist.Record.Acts). Unsettle returns the
// record as it was settled: Told tells if a caller was told of that. With Config.OnResult
// the hold is owed to it. Unsettle accepts AsSeen and OfAccount. While the operation is held
// so, another call returns it as it is, Told of the settlement, and nil. A later generation
// of the key is not sent before a person says that this one was absent, or was refused:
// after an absence that was taken back callers may have gone on. What an event of the API proves
// (persist.Record.Evidence) is not taken back: that is ErrFinal.
//
// Errors: those of Lookup; ErrStale, as in AsSeen; ErrInFlight while a call runs the
// operation; ErrKeyReused if another operation has replaced it, as in Redrive;
// ErrConfig for a reason that is empty or over persist.NoteBytesMax, and if the journal no
// longer has the request. For an operation that is not settled the verdict is as of its
// state. ErrOutcomeUnknown after a failure of the journal: look at the operation, and call
// Unsettle again.
func (c *Client) Unsettle(ctx context.Context, key Key, reason string, options ...LookupOption) (persist.Record, error) {
	rec, err := c.inner().Unsettle(ctx, string(key), reason, choose(options))
	return rec, errorOf(err)
}

// Erase takes everything out of the record of an ended operation that no second effect depends
// on: the request, the answer, the attempts, notes and acts, kept fields, fingerprints, and the
// digests of credentials. Digests under the secret of the journal replace the key, also as
// spelled on the wire, the account, and the keys of operations begun in each other's place;
// plain digests replace the values of headers that name the owner of the keys
// (persist.Record.Scopes). Left are the method, the origin and the profile's name, and state,
// effect, status, times and counters. A call that names the key and the account still finds the
// record. A listing shows the digests, as "erased:" and 64 hexadecimal digits.
//
// The other operations of the same intent are erased with it: those begun by Redrive or Rekey,
// before and after it, 64 generations of the key before it, and 16 after it. All of
// them must have ended, been told and been delivered; their windows and the times of their
// answers (Config.KeepAnswer; Prune ends these sooner) must be over. Else nothing is erased, or,
// after a failure of the journal, a part: call Erase again. A second call is nil.
//
// From then on every call with the key, with the same request or another one, by any client, is
// ErrFinal, with the effect in Error.Effect; of an abandoned operation the effect is unknown.
// Redrive, Rekey and Unsettle are ErrConfig.
//
// The engine of the journal may still hold the old bytes: docs/security.md says where, and what
// removes them. Erase accepts AsSeen and OfAccount.
//
// Errors: those of Lookup; ErrStale, as in AsSeen; ErrConfig for a journal without
// persist.Eraser; for a held operation ErrHeld, for a pending one ErrOutcomeUnknown; ErrInFlight
// while a call runs the operation, or a send may be on its way; for an ended one that may not be
// erased yet the verdict of its end, with the reason and, if there is one, the time.
func (c *Client) Erase(ctx context.Context, key Key, options ...LookupOption) error {
	return errorOf(c.inner().Erase(ctx, string(key), choose(options)))
}

// Sweep drops answers and forgets keys, of every account in the journal, as far as the
// records allow, and returns the number of changed records. See Config.KeepAnswer, Config.KeepKey and
// Config.KeepText. A record is kept as its own client's Config says. Run sweeps once an hour.
func (c *Client) Sweep(ctx context.Context) (int, error) {
	n, err := c.inner().Sweep(ctx)
	return n, errorOf(err)
}

// Keeping has the times of a Prune.
type Keeping struct {
	// KeepAnswer is the time from the end of an operation to the loss of its answer. Zero:
	// as the record says. Negative: none.
	KeepAnswer time.Duration
	// KeepKey is the time from the end of an operation to the loss of its key. Zero: as the
	// record says. Negative: as long as the answer. Other values: at least the window of each
	// profile, as in Config.KeepKey.
	KeepKey time.Duration
	// KeepText is the time from the end of an operation to the loss of the text of its used key. Zero: as the record
	// says. Negative: as long as the answer. Other values: as in Config.KeepText.
	KeepText time.Duration
}

// Prune is Sweep with times that replace those of the records, also of other clients and
// accounts. A lost answer is not replayed. A forgotten key is new: the next call with it may
// take effect once more. A record under change at that moment is passed over: call again
// if all have to go. Errors: ErrConfig for a Keeping that no Config could have.
func (c *Client) Prune(ctx context.Context, keep Keeping) (int, error) {
	n, err := c.inner().Prune(ctx, keep.KeepAnswer, keep.KeepKey, keep.KeepText)
	return n, errorOf(err)
}
