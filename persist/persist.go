// Package persist is the contract between oncehttp and the place where it
// keeps its operations: [Journal], [Record], [Answer], [State] and the sentinel
// errors. It imports the standard library only.
//
// A record is one operation: its idempotency key, the request named by the key,
// and the known part of its outcome. A journal keeps records across
// crashes. Package persist/bolt is the default journal (one file). Packages
// persist/postgres, persist/mysql and persist/redis are journals shared by several machines.
// Package persist/memory is the reference implementation for tests, and
// persist/persisttest the suite for every journal to pass. Package persist/seal
// encrypts the content of any of them.
//
// Methods of a nil *Record, *Answer, *Query, *Limits or *Attachment panic, and so do functions called with a nil record.
package persist

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// The sentinels a Journal returns, always wrapped so that errors.Is finds them.
var (
	// ErrNotFound: no record has this ID (or it was forgotten or swept whole).
	ErrNotFound = errors.New("persist: no such record")
	// ErrStale: the record has another revision than the caller's, or is already
	// final. Read it again before deciding anything.
	ErrStale = errors.New("persist: record has changed since it was read")
	// ErrUncertain: a commit failed, and may or may not have reached the
	// disk. A journal in a file refuses all further work with this error until
	// it is closed and opened again. A journal on a database server goes on: the
	// error is about this one call.
	ErrUncertain = errors.New("persist: a commit failed and may or may not be durable")
	// ErrLocked: another process holds the journal.
	ErrLocked = errors.New("persist: journal is held by another process")
	// ErrCorrupt: the journal, or one record in it, is damaged. Nothing damaged
	// is ever overwritten.
	ErrCorrupt = errors.New("persist: journal is damaged")
	// ErrSealed: the record is sealed, and its key was not given or is another one; or it is not sealed, in a
	// journal opened with keys. See package persist/seal. Every such error matches ErrCorrupt, too: the
	// record cannot be read, and nothing overwrites it.
	ErrSealed error = unreadable{}
	// ErrNewer: the record was written by a later version of this module, and this one cannot read it. It is intact: the later
	// version acts on it, and this one neither claims, nor sends, nor changes it. A listing goes on behind it, as behind a record
	// with ErrCorrupt. ErrNewer does not match ErrCorrupt.
	ErrNewer = errors.New("persist: record was written by a newer version")
	// ErrGone: the journal's file was deleted, moved away or replaced while it was
	// open: no process would find again a record begun now. Begin refuses, and
	// has written nothing. Everything else goes on, so work under way ends. Where
	// another file was copied over it, nothing goes on: every call is ErrGone.
	// Of a journal on Redis: it was emptied, and does not know the earlier sends.
	// There any call about to say that a record is not there returns this error, too.
	ErrGone = errors.New("persist: journal is no longer at its place")
	// ErrReadOnly: the journal was opened for reading, or its server takes no writes, as a standby. Nothing was written.
	ErrReadOnly = errors.New("persist: journal takes no writes")
	// ErrDenied: the role of the open journal has no right on the facts for a call of Fact. Nothing was read or written.
	ErrDenied = errors.New("persist: the role has no right on the facts of the journal")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("persist: journal is closed")
	// ErrExists: a record was to be assigned to an account, and the account has one of this key.
	ErrExists = errors.New("persist: the account has a record of this key")
	// ErrInvalid: the record breaks a rule of Record.Validate. A caller's bug.
	ErrInvalid = errors.New("persist: invalid record")
	// ErrTooLarge: the record is larger than the engine of the journal takes; the error names the bound. Nothing was
	// written. Every such error matches ErrInvalid, too. A client recording an answer does it again without the body
	// (Answer.BodyDropped), or without the header, too.
	ErrTooLarge error = oversized{}
)

// oversized is the type of ErrTooLarge.
type oversized struct{}

// Error returns the text of ErrTooLarge.
func (oversized) Error() string { return "persist: record is larger than the journal takes" }

// Unwrap makes errors.Is match ErrInvalid, too.
func (oversized) Unwrap() error { return ErrInvalid }

// SecretSize is the length of a journal's secret in bytes.
const SecretSize = 32

// unreadable is the type of ErrSealed.
type unreadable struct{}

// Error returns the text of ErrSealed.
func (unreadable) Error() string { return "persist: sealed record" }

// Unwrap makes errors.Is match ErrCorrupt, too.
func (unreadable) Unwrap() error { return ErrCorrupt }

// Journal keeps records. All methods are safe for concurrent use by any number
// of goroutines. persisttest.Run tests implementations.
//
// Methods never keep, and never change, the slices and maps of a Record
// given to them, not even for a moment. Those of an answer may be in use by the
// callers who got it. A returned Record belongs to the caller.
//
// A nil context is a mistake of the program. A method may panic then, on the caller's goroutine and with nothing held: the
// journal goes on.
type Journal interface {
	// Begin creates the record if its ID is absent, at revision 1, and returns
	// it with created true. If a record has this ID already, Begin
	// changes nothing and returns the existing record, tombstones included.
	//
	// Durable on return. Atomic: of any number of concurrent Begins of one ID
	// exactly one creates. If ctx ends before the record was queued, Begin
	// returns the error of ctx and leaves nothing. Once queued, Begin waits for
	// the commit and does not look at ctx.
	// Errors: ErrInvalid, ErrTooLarge, ErrUncertain, ErrClosed, ErrCorrupt, ErrGone, or the
	// journal's own error when the record was definitely not written (a full disk).
	Begin(ctx context.Context, rec Record) (existing Record, created bool, err error)

	// Update replaces an unfinished record (Pending or Held, before and after)
	// at revision rec.Revision, and returns it at its new one.
	// Identity (ID, Seq, Created, Fingerprint) cannot change: ErrInvalid. Everything else frozen by Begin stays as it was,
	// whatever rec has in its place. Of rec.SendUntil and the stored one the later stays.
	//
	// Durable on return; not cancellable once queued.
	// Errors: ErrNotFound, ErrStale, and those of Begin but ErrGone.
	Update(ctx context.Context, rec Record) (Record, error)

	// Finish moves an unfinished record at revision rec.Revision to the
	// final state rec.State. Of rec.SendUntil and the stored one the later stays.
	//
	// Visible to every later call at once. Durable with one of the next commits,
	// 10 ms later at most, and at Close; Flush waits for it. A crash before this
	// commit leaves the record as it was. This is safe: the operation is asked again
	// with the same key. Record.Unreported is stored as it is given. With rec.RequestDropped, the same write removes Body, and
	// writes everything else frozen by Begin as rec has it, which must be as it was read; so does Amend.
	// Errors: ErrNotFound, ErrStale, and those of Begin but ErrGone.
	Finish(ctx context.Context, rec Record) error

	// MarkReported clears Record.Unreported: a caller was told how the operation
	// with this ID ended. Calling it again changes nothing. It returns nil if
	// no record has this ID and if the record is not marked.
	//
	// Visible to every later call at once. It may become durable later than
	// Finish does, at the latest with the next Flush or Close. If a crash loses
	// it, a caller without a key is refused once more, and is told again.
	// Errors: ErrUncertain, ErrClosed, ErrCorrupt, or the journal's own.
	MarkReported(ctx context.Context, id ID) error

	// Assign gives the record with rec's ID and revision, in any state, to another account. Its ID has this account
	// from then on, and its former ID is free. Seq stays, and the revision is the next one. Created and
	// Fingerprint must be as they were. Everything else is written as rec has it, the fields frozen by Begin included: a
	// journal wrapping another can seal it anew. Assign returns the record as it is then. It does not look at another
	// process's lease of the record: the caller must know of it.
	//
	// Durable on return; not cancellable once queued. Atomic: no call sees the record under both IDs, or under neither.
	// If the account has a record of this key, nothing changes: ErrExists.
	// Errors: ErrNotFound, ErrStale, ErrExists, and those of Begin but ErrGone.
	Assign(ctx context.Context, rec Record, account string) (Record, error)

	// Amend replaces a final record at revision rec.Revision: by a final one, or by a Held one that a person has reopened. The record
	// returned is at its new revision. What Begin has frozen stays, as with Update. Of rec.SendUntil and the stored one the later stays.
	//
	// Durable on return; not cancellable once queued. Atomic: of any number of concurrent Amends of one revision exactly one succeeds.
	// Errors: ErrNotFound, ErrStale if the record has changed or is not final, ErrInvalid for a pending record and an erased one, and those of Begin but
	// ErrGone.
	Amend(ctx context.Context, rec Record) (Record, error)

	// Secret returns the journal's secret: SecretSize random bytes. A journal has it from its creation, or from
	// the first call. It is the same in every process and for as long as the journal lasts, and is in no record.
	// Record.Credentials are keyed with it. Errors: ErrUncertain, ErrClosed, the context's, or the journal's own.
	Secret(ctx context.Context) ([]byte, error)

	// Fact returns the value under a name for the journal as a whole, nil if there is none. If the value is old, or there is none and
	// old is empty, Fact writes value first, unless value is nil. So it reads, writes a name without a value, and compares and sets.
	// If another call was faster, the result is not value.
	//
	// A write is durable on return; not cancellable once queued. Atomic: of two calls with one old at most one writes.
	// Errors: ErrInvalid for a name or a value past their bounds (CheckFact), ErrDenied if a role may not do this, and ErrReadOnly for
	// a write to a journal opened for reading. Besides, those of Secret.
	Fact(ctx context.Context, name string, old, value []byte) (standing []byte, err error)

	// Forget removes an unfinished record at revision rec.Revision: its ID is
	// free again.
	//
	// Durable on return; not cancellable once queued. Get and List do not miss
	// the record before it is durable.
	// Errors: ErrNotFound, ErrStale, and those of Begin but ErrGone.
	Forget(ctx context.Context, rec Record) error

	// Get returns the record with this ID, or ErrNotFound.
	Get(ctx context.Context, id ID) (Record, error)

	// List yields the records matching q, oldest Seq first. Its memory does not
	// grow with their number. It sees every change returned before the call. A
	// record changed during the iteration may be seen before or after the
	// change, never twice and never torn. The loop body may call any method of
	// the journal. A record without its text may have Seq 0, and comes last then; if it is asked for without its key, its ID may be of no use. An error is
	// yielded once, last, except ErrCorrupt for one
	// damaged record: after it the iteration goes on with the next record. The
	// results may be decided by the call already: range over it at once.
	List(ctx context.Context, q Query) iter.Seq2[Record, error]

	// Sweep removes data past its keeping time, at most of l.Max records, and
	// returns the number of changed records. The record sets this time, not the sweeper: see Limits. Only final records are touched. Once
	// the request's time is over (Record.KeepRequest), Body is dropped. Once the answer's time is over, Answer, Header and Body are dropped, KeptFields stay,
	// and Swept is set: see Record.Strip. This tombstone of a caller-chosen key stays for Record.KeepKey. After Record.KeepText it
	// has no text: see Record.Erase. A journal may keep all texts, and it may keep less of such a record than Erase: State, Effect, Status,
	// Finished and Scopes stay, and Begin, Get and List find it as Eraser.Erase says. A record
	// with a generated key is removed with its answer. An Unreported one
	// stays, without its answer, until its Window has passed since Finished. A
	// KeyTold one, and one with ReplacedBy or Replaces, stay as if a caller had chosen the key. No Sweep, and no Prune, removes
	// a record with Evidence that ended otherwise, or has ReplacedBy.
	//
	// Durable with the next commit. It works in small steps, and other calls go on
	// between them.
	Sweep(ctx context.Context, l Limits) (int, error)

	// Flush returns when every Finish and every MarkReported returned
	// before the call is durable, and is nil only then. Not cancellable once queued.
	// Errors: ErrUncertain, ErrClosed, or the journal's own if something
	// could not be written.
	Flush(ctx context.Context) error

	// Attach returns the one value shared by all users of this journal in this
	// process. The first call creates it. oncehttp keeps its table of
	// calls in flight there: two clients on one journal cannot send one
	// operation side by side. Embed [Attachment] to implement it. It panics if create is nil.
	Attach(create func() any) any

	// Close makes every Finish durable, waits for calls under way, and releases
	// everything held by the journal. If it returns an error, a Finish may be lost, and its
	// operation is asked again with the same key. Later calls return ErrClosed. A
	// second Close returns nil, whatever the first has returned.
	Close() error
}

// Claimer is a journal shared by several processes or machines. It has a clock of its own,
// the clock of its engine, and all times in its records are by this clock. A client asks for
// the time with Now and reckons from there. So it writes the same times as every other client,
// whatever its machine's clock says. It is optional: find it with [As]. As also looks into a
// journal wrapping another.
//
// A lease names the process running an operation. Leases save sends; the idempotency key
// makes a double send harmless. A lease lasts seconds and is renewed while its operation
// runs. An Update or Finish without LeaseOwner releases it. It also ends by itself: others go
// on soon after a process has died.
//
// Claim raises the revision, and this is the fence: an Update, Finish or Forget by the earlier
// holder of the record is ErrStale from then on. A process frozen past its lease may
// send once more, under the same key, and cannot overwrite anything recorded by others since.
type Claimer interface {
	// Now returns the time by the journal's clock, at a moment during the call; not the time at
	// the beginning of some transaction.
	// Errors: ErrClosed, the context's, or the journal's own.
	Now(ctx context.Context) (time.Time, error)

	// Claim takes up to n records: they match q, are Pending and due, and have no lasting
	// lease. In one atomic step it gives them to owner until lease after now
	// ([Record.TakeLease]), counts their Drives one up, and raises their revision. It returns them
	// as they are then, in any order. now is the time of this judgment by the journal's clock;
	// if it took none, any time during the call.
	//
	// A record is due if its NextAttempt is neither after now nor after q.DueBy, if DueBy is
	// set. A lease lasts while now is before its LeaseUntil, whoever has it, owner itself
	// included. If the answer to a claim was lost, its records are free again after the lease. Of
	// the due records, those due for longest should come first. A damaged
	// record is passed over if there are others.
	// Errors: ErrClosed, ErrCorrupt, the context's, or the journal's own.
	Claim(ctx context.Context, q Query, owner string, lease time.Duration, n int) (claimed []Record, now time.Time, err error)

	// Renew sets LeaseUntil to lease after now on the Pending records among ids with owner as
	// their LeaseOwner, in one step. It does so also if a lease has ended and nobody has taken
	// it. Revisions stay as they are. held are these records, in any order: the lease of any
	// other is lost. now is the time by the journal's clock; it is set also
	// if none is held. Renew need not be durable: a lease lost by a crash costs a send.
	//
	// An error may come with some held records: these are renewed. Of the others nothing is known
	// then, and no lease is lost by the error: each lasts as long as it did. So it is if records are locked in the
	// journal's engine, such as by a transaction of the caller's own; they keep no others from being renewed.
	// Errors: as Claim.
	Renew(ctx context.Context, owner string, lease time.Duration, ids []ID) (held []ID, now time.Time, err error)
}

// SendClaimer is a [Claimer] with a claim that also marks the claimed records as maybe sent, in the same step. So a caller
// about to send saves a write for each record. It is optional. Assert the Claimer, and not with [As]: a journal wrapping
// another, with a Claim of its own, is none. A type embedding a SendClaimer is one: if it has a Claim of its own, it
// needs a ClaimToSend of its own, too, since Run calls ClaimToSend instead.
type SendClaimer interface {
	Claimer

	// ClaimToSend is Claim. Besides, it marks each record if [Record.MarkedByClaim] is true. It sets MaybeSent, FirstSent
	// to now, and SendUntil to sending after now unless it is later. The mark is durable when it returns. sending is how long after the
	// claim a send by owner may still be on its way. The returned records lack the mark: they are as before but for lease, Drives and
	// revision. A caller not sending a record takes the mark away with the Update that gives the record back. A caller sending
	// one first adds the three fields to the record. If a process dies in between, the record says that it may have been sent.
	// Errors: as Claim.
	ClaimToSend(ctx context.Context, q Query, owner string, lease, sending time.Duration, n int) (claimed []Record, now time.Time, err error)
}

// InProcess is a journal in reach of this process only, although it is a [Claimer]: no other can have written its content, as in
// package persist/memory. It is optional: find it with [As].
type InProcess interface {
	// InProcess reports whether this is so. A journal wrapping another, without Unwrap, returns the result of the wrapped one.
	InProcess() bool
}

// LateFinisher is a journal with a Finish that waits for a server. Do then gives its caller a confirmed answer before the record
// says so, if the same key finds this answer again. It waits for the record's end only before its next look at the record. It is
// optional. Assert the journal itself, and not with [As]; it is one only if FinishesLate returns it.
type LateFinisher interface {
	Journal

	// FinishLate is Finish for a caller with time to wait: the journal may begin up to 10 ms later, so several changes share a
	// commit. If the server cannot be reached, it tries again for as long as a call of the journal may take. Otherwise a
	// record would stay pending once its end is given up. Durable on return. Close waits for it.
	// Errors: as Finish.
	FinishLate(ctx context.Context, rec Record) error

	// FinishesLate returns the journal itself. For a type embedding a LateFinisher it returns the embedded one: this
	// type is then taken for none, and its own Finish is not passed by.
	FinishesLate() Journal
}

// DueTimes is a journal with an index of the due times, so Run need not look at all waiting records. It is
// optional: find it with [As].
type DueTimes interface {
	// DueTimes returns, in any order, the first due time for each origin and Needs of the pending records selected by q:
	// the earliest NextAttempt, possibly past or zero. Records with a lasting lease are left out. Of q, Account,
	// AllAccounts, Origin and Needs count, and DueBy for DueTime.Next. It reads as many records as there are origins, accounts,
	// Needs and leases, however many are pending.
	// Errors: ErrClosed, the context's, or the journal's own.
	DueTimes(ctx context.Context, q Query) ([]DueTime, error)
}

// DueTime is the due time of the first pending record of an origin, with these needs.
type DueTime struct {
	Origin string // as Record.Origin
	// Needs is the text of Record.Needs. With it, Claim takes no others (Query.Needs). A [Claimer] sets it, so a client claims
	// no record it cannot act on. Empty: the records of all needs together.
	Needs string
	At    time.Time // its NextAttempt; zero is at once
	// Next is the earliest NextAttempt after Query.DueBy; zero if there is none, or if DueBy is zero. A journal that is no
	// Claimer sets it: there a record being run looks like a due one, and would hide the records due after it. A
	// Claimer need not.
	Next time.Time
}

// Notifier is a journal for wakes between the processes sharing it: Run sends at once an operation enqueued by another
// process. It is optional: find it with [As]. It promises nothing: a wake may be lost, late or in vain, and may
// come back to its sender. So a listener looks at the journal now and then all the same.
type Notifier interface {
	// Notify lets all listeners, in any process, look at the journal. Call it when something has become due, after the
	// write. It returns at once, and never fails. The journal tells the others by itself, once for all calls within 100 ms,
	// the first of them at once. Close sends the rest. After Close Notify does nothing.
	Notify()

	// Listen calls heard(nil) whenever something may have become due: first when it begins to hear, then for each
	// notification, and again after a time without hearing. If it does not hear, it calls heard with the reason,
	// once, and goes on trying. Only the return of a message of its own counts as hearing.
	// One goroutine calls heard, and heard must return soon. Any number of Listens may be under way.
	//
	// It returns when ctx has ended, with its error, or when the journal is closed, with ErrClosed.
	Listen(ctx context.Context, heard func(err error)) error
}

// Prober is a journal with records begun by others in transactions of their own. Get does not see these before the commit. It
// is optional. Without a Prober, a record not found by Get is taken as absent.
type Prober interface {
	// Probe is Get, and proves absence: like Begin, it waits for open transactions that have begun the record, and returns
	// ErrNotFound only if there are none. It leaves nothing in the journal.
	// Errors: ErrUncertain if such a transaction stays open for longer than the journal waits; those of Get.
	Probe(ctx context.Context, id ID) (Record, error)
}

// As finds the abilities of a journal beyond [Journal]: it returns j as a T, or the
// first journal below j that is a T. A wrapping journal shows the wrapped one by a
// method Unwrap() Journal. ok is false if none of them is a T.
//
//	claimer, ok := persist.As[persist.Claimer](j)
func As[T any](j Journal) (t T, ok bool) {
	for j != nil {
		if t, ok = j.(T); ok {
			return t, true
		}
		wrapper, wraps := j.(interface{ Unwrap() Journal })
		if !wraps {
			break
		}
		j = wrapper.Unwrap()
	}
	return t, false
}

// Attachment implements the method Attach of [Journal]. The zero value is ready.
// It must not be copied after its first use.
type Attachment struct {
	once  sync.Once
	value any
}

// Attach returns the value attached to a journal, which all its users in this process share. The first call creates it by create. Later calls ignore their
// create. It panics if create is nil, and has attached nothing then.
func (a *Attachment) Attach(create func() any) any {
	if create == nil {
		panic("persist: Attach without a function")
	}
	a.once.Do(func() { a.value = create() })
	return a.value
}
