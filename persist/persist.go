// Package persist is the contract between oncehttp and the place where it
// keeps its operations: [Journal], [Record], [Answer], [State] and the sentinel
// errors. It imports the standard library only.
//
// A record is one operation: its idempotency key, the request that the key
// names, and what is known of its outcome. A journal keeps records across
// crashes. Package persist/bolt is the default journal (one file),
// persist/postgres, persist/mysql and persist/redis are journals that several machines share,
// persist/memory is the reference implementation for tests, and
// persist/persisttest the suite that every journal has to pass. persist/seal
// encrypts what any of them keeps.
//
// Methods of a nil *Record, *Answer, *Query, *Limits or *Attachment panic, and so does what is given a nil record.
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
	// ErrUncertain: a commit failed, and whether it reached the disk is not
	// known. A journal in a file refuses all further work with this error until
	// it is closed and opened again. A journal on a database server goes on: the
	// error is about this one call.
	ErrUncertain = errors.New("persist: a commit failed and may or may not be durable")
	// ErrLocked: another process holds the journal.
	ErrLocked = errors.New("persist: journal is held by another process")
	// ErrCorrupt: the journal, or one record in it, is damaged. Nothing damaged
	// is ever overwritten.
	ErrCorrupt = errors.New("persist: journal is damaged")
	// ErrSealed: the record is sealed, and its key was not given or is another one; or it is not sealed, in a
	// journal that was opened with keys. See package persist/seal. Every such error matches ErrCorrupt, too: the
	// record cannot be read, and nothing overwrites it.
	ErrSealed error = unreadable{}
	// ErrNewer: the record was written by a later version of this module, in a way that this one cannot read. It is intact: that
	// version acts on it, and this one neither claims, nor sends, nor changes it. A listing goes on behind it, as behind one that is
	// ErrCorrupt, which it is not.
	ErrNewer = errors.New("persist: record was written by a newer version")
	// ErrGone: the journal's file was deleted, moved away or replaced while it was
	// open, so that no process would find again what is begun now. Begin refuses, and
	// has written nothing; everything else goes on, so that what is under way ends.
	// Of a journal on Redis: it was emptied, so that it does not know what was sent.
	// There whatever would have to say that a record is not there is this error, too.
	ErrGone = errors.New("persist: journal is no longer at its place")
	// ErrReadOnly: the journal was opened for reading, or its server takes no writes, as a standby. Nothing was written.
	ErrReadOnly = errors.New("persist: journal takes no writes")
	// ErrDenied: the role with which the journal is open has no right on what a call of Fact asks for. Nothing was read or written.
	ErrDenied = errors.New("persist: the role has no right on the facts of the journal")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("persist: journal is closed")
	// ErrExists: the account to which a record was to be assigned has one of this key.
	ErrExists = errors.New("persist: the account has a record of this key")
	// ErrInvalid: the record breaks a rule of Record.Validate. A caller's bug.
	ErrInvalid = errors.New("persist: invalid record")
	// ErrTooLarge: the record is larger than the engine of the journal takes; the error says what bounds it. Nothing was
	// written. Every such error matches ErrInvalid, too. Whoever records an answer does it again without the body
	// (Answer.BodyDropped), or without the header, too.
	ErrTooLarge error = oversized{}
)

// oversized is the type of ErrTooLarge.
type oversized struct{}

func (oversized) Error() string { return "persist: record is larger than the journal takes" }
func (oversized) Unwrap() error { return ErrInvalid }

// SecretSize is the length of a journal's secret in bytes.
const SecretSize = 32

// unreadable is the type of ErrSealed.
type unreadable struct{}

func (unreadable) Error() string { return "persist: sealed record" }
func (unreadable) Unwrap() error { return ErrCorrupt }

// Journal keeps records. All methods are safe for concurrent use by any number
// of goroutines. persisttest.Run tests implementations.
//
// Methods never keep, and never change, the slices and maps of a Record that
// they are given, not even for a moment: those of an answer may be in use by the
// callers who got it. What they return belongs to the caller.
//
// A nil context is a mistake of the program. A method may panic then, on the caller's goroutine and with nothing held, so that
// the journal goes on.
type Journal interface {
	// Begin creates the record if its ID is absent, at revision 1, and returns
	// it with created true. If a record has that ID already, Begin
	// changes nothing and returns the existing record, tombstones included.
	//
	// Durable on return. Atomic: of any number of concurrent Begins of one ID
	// exactly one creates. A ctx that ends before the record was queued gives
	// its error and leaves nothing; once queued, Begin waits for the commit and
	// does not look at ctx.
	// Errors: ErrInvalid, ErrTooLarge, ErrUncertain, ErrClosed, ErrCorrupt, ErrGone, or the
	// journal's own error when the record was definitely not written (a full disk).
	Begin(ctx context.Context, rec Record) (existing Record, created bool, err error)

	// Update replaces an unfinished record (Pending or Held, before and after)
	// whose revision is rec.Revision, and returns it at its new one.
	// Identity (ID, Seq, Created, Fingerprint) cannot change: ErrInvalid. What else Begin froze stays as it was,
	// whatever rec has in its place. Of rec.SendUntil and the stored one the later stays.
	//
	// Durable on return; not cancellable once queued.
	// Errors: ErrNotFound, ErrStale, and those of Begin but ErrGone.
	Update(ctx context.Context, rec Record) (Record, error)

	// Finish moves an unfinished record whose revision is rec.Revision to the
	// final state rec.State. Of rec.SendUntil and the stored one the later stays.
	//
	// Visible to every later call at once. Durable with one of the next commits,
	// 10 ms later at most, and at Close; Flush waits for it. A crash before that
	// leaves the record as it was, which is safe: the operation is asked again
	// with the same key. Record.Unreported is stored as it is given.
	// Errors: ErrNotFound, ErrStale, and those of Begin but ErrGone.
	Finish(ctx context.Context, rec Record) error

	// MarkReported clears Record.Unreported: a caller was told how the operation
	// with this ID ended. Calling it again changes nothing. It returns nil where
	// no record has this ID and where the record is not marked.
	//
	// Visible to every later call at once. It may become durable later than
	// Finish does, at the latest with the next Flush or Close. If a crash loses
	// it, a caller without a key is refused once more, and is told again.
	// Errors: ErrUncertain, ErrClosed, ErrCorrupt, or the journal's own.
	MarkReported(ctx context.Context, id ID) error

	// Assign gives the record with rec's ID and revision, in whatever state it is, to another account: its ID has that
	// account from then on, and the ID that it had is free. Seq stays, and the revision is the next one. Created and
	// Fingerprint must be as they were; everything else is written as rec has it, what Begin has frozen included, so that
	// a journal that wraps another can seal it anew. It returns the record as it is then. Whether another process has a
	// lease of it is the caller's to know.
	//
	// Durable on return; not cancellable once queued. Atomic: no call sees the record under both IDs, or under neither.
	// Where the account has a record of this key, nothing changes: ErrExists.
	// Errors: ErrNotFound, ErrStale, ErrExists, and those of Begin but ErrGone.
	Assign(ctx context.Context, rec Record, account string) (Record, error)

	// Secret returns the journal's secret: SecretSize random bytes, which a journal has from when it is made, or from
	// the first call. It is the same in every process and for as long as the journal lasts, and is in no record.
	// Record.Credentials are keyed with it. Errors: ErrUncertain, ErrClosed, the context's, or the journal's own.
	Secret(ctx context.Context) ([]byte, error)

	// Fact returns what stands under a name for the journal as a whole, nil if nothing does. Where old stands, or nothing does and old
	// is empty, it writes value first, unless that is nil. So it reads, writes what nobody has written, and compares and sets; what it
	// returns is not value where another was faster.
	//
	// What it writes is durable on return; not cancellable once queued. Atomic: of two calls with one old at most one writes.
	// Errors: ErrInvalid for a name or a value past their bounds (CheckFact), ErrDenied where a role may not do this, ErrReadOnly for a
	// write to a journal that was opened for reading, and those of Secret.
	Fact(ctx context.Context, name string, old, value []byte) (standing []byte, err error)

	// Forget removes an unfinished record whose revision is rec.Revision, so that
	// its ID is free again.
	//
	// Durable on return; not cancellable once queued. Get and List do not miss
	// the record before that.
	// Errors: ErrNotFound, ErrStale, and those of Begin but ErrGone.
	Forget(ctx context.Context, rec Record) error

	// Get returns the record with this ID, or ErrNotFound.
	Get(ctx context.Context, id ID) (Record, error)

	// List yields the records that match q, oldest Seq first, in memory that
	// does not grow with their number. It sees every change that was returned
	// before the call; a record that changes while the iteration runs may be
	// seen before or after the change, never twice and never torn. The loop
	// body may call any method of the journal. An error is yielded once, last,
	// except ErrCorrupt for one damaged record, after which the iteration goes
	// on with the next. What it yields may be decided by the call already: range
	// over it at once.
	List(ctx context.Context, q Query) iter.Seq2[Record, error]

	// Sweep removes what is past its keeping time, at most l.Max records, and
	// returns how many it changed. How long that is says the record, not who sweeps: see Limits. Only final records are touched. Where the
	// answer's time is over, Answer, Header and Body are dropped, KeptFields stay,
	// and Swept is set: see Record.Strip. This tombstone of a caller-chosen key stays for Record.KeepKey. A record
	// with a generated key is removed with its answer; one that is Unreported
	// stays, without its answer, until its Window has passed since Finished. One
	// that is KeyTold stays as if a caller had chosen the key.
	//
	// Durable with the next commit. It works in small steps, between which
	// other calls go on.
	Sweep(ctx context.Context, l Limits) (int, error)

	// Flush returns when every Finish and every MarkReported that returned
	// before the call is durable, and is nil only then. Not cancellable once queued.
	// Errors: ErrUncertain, ErrClosed, or the journal's own where something
	// could not be written.
	Flush(ctx context.Context) error

	// Attach returns the one value that all users of this journal in this
	// process share. The first call creates it. oncehttp keeps its table of
	// calls in flight there, so that two clients on one journal cannot send one
	// operation side by side. Embed [Attachment] to implement it. It panics if create is nil.
	Attach(create func() any) any

	// Close makes every Finish durable, waits for calls under way, and releases
	// what the journal holds. Where it is not nil, a Finish may be lost, and its
	// operation is asked again with the same key. Later calls give ErrClosed. A
	// second Close is nil, whatever the first has returned.
	Close() error
}

// Claimer is a journal that several processes or machines share. It has a clock of its own,
// that of its engine, and all times in its records are by that clock: a client asks for it
// with Now, reckons from there, and so writes the same times as every other, whatever its
// machine's clock says. It is optional: find it with [As], which also looks into a journal
// that wraps another.
//
// A lease says which process runs an operation. Leases save sends; it is the idempotency key
// that makes a double send harmless. A lease lasts seconds, is renewed while its operation
// runs, is released by an Update or Finish without LeaseOwner, and ends by itself, so that
// others go on soon after a process has died.
//
// Claim raises the revision, and that is the fence: an Update, Finish or Forget of whoever had
// the record before is ErrStale from then on. A process that was frozen past its lease may
// send once more, under the same key, and cannot overwrite what others have recorded since.
type Claimer interface {
	// Now returns the time by the journal's clock, at a moment during the call; not that at
	// which some transaction began.
	// Errors: ErrClosed, the context's, or the journal's own.
	Now(ctx context.Context) (time.Time, error)

	// Claim takes up to n records that match q, are Pending and due, and have no lease that
	// lasts. In one atomic step it sets their LeaseOwner to owner and their LeaseUntil to
	// lease after now, counts their Drives one up, and raises their revision. It returns them as they are then, in any
	// order, and now, the time by the journal's clock at which it judged them; where it took
	// none, any time during the call.
	//
	// Due is a record whose NextAttempt is neither after now nor after q.DueBy, if that is
	// set. A lease lasts while now is before its LeaseUntil, whoever has it, owner itself
	// included: what a claim took whose answer was lost is free again after the lease. Of the
	// records that are due, those that have been so for longest should come first. A damaged
	// record is passed over where there are others.
	// Errors: ErrClosed, ErrCorrupt, the context's, or the journal's own.
	Claim(ctx context.Context, q Query, owner string, lease time.Duration, n int) (claimed []Record, now time.Time, err error)

	// Renew sets LeaseUntil to lease after now on those of the records that are Pending and
	// have owner as their LeaseOwner, also where the lease has ended and nobody has taken it,
	// in one step. Revisions stay as they are. It returns which those are, in any order: of
	// any other the lease is lost. now is the time by the journal's clock; it is set also
	// where none is held. It need not be durable: a lease that a crash loses costs a send.
	//
	// An error may come with some that are held: those are renewed. Of the others nothing is known
	// then, and none is lost by that: each lasts as long as it did. So it is where records are locked in the
	// journal's engine, such as by a transaction of the caller's own; they keep no others from being renewed.
	// Errors: as Claim.
	Renew(ctx context.Context, owner string, lease time.Duration, ids []ID) (held []ID, now time.Time, err error)
}

// SendClaimer is a [Claimer] that writes of what it takes, in the same step, that it may have been sent, so that a caller
// that is about to send saves a write for each record. It is optional. Assert the Claimer, and not with [As]: a journal that
// wraps another and has a Claim of its own is none. A type that embeds a SendClaimer is one: if it has a Claim of its own, it
// needs a ClaimToSend of its own, too, since Run calls that instead.
type SendClaimer interface {
	Claimer

	// ClaimToSend is Claim. Besides it sets MaybeSent of each record of which [Record.MarkedByClaim] says so, FirstSent
	// to now, and SendUntil to sending after now unless it is later, durably when it returns. sending is how long after the
	// claim a send by owner may still be on its way. It returns the records without that: as they were before but for lease, Drives and revision.
	// So whoever does not send one takes the mark away with the Update that gives it back, and whoever sends adds the three fields
	// to the record first. Of a process that dies in between, the record says that it may have been sent.
	// Errors: as Claim.
	ClaimToSend(ctx context.Context, q Query, owner string, lease, sending time.Duration, n int) (claimed []Record, now time.Time, err error)
}

// InProcess is a journal that only this process reaches, although it is a [Claimer]: no other can have written what stands in it, as in
// package persist/memory. It is optional: find it with [As].
type InProcess interface {
	// InProcess reports whether that is so. A journal that wraps another, and has no Unwrap, returns what that one does.
	InProcess() bool
}

// LateFinisher is a journal whose Finish waits for a server. Do then gives its caller a confirmed answer before the record
// says so, if the same key finds that answer again, and waits for the record's end only before its next look at it. It is
// optional. Assert the journal itself, and not with [As]; it is one only if FinishesLate returns it.
type LateFinisher interface {
	Journal

	// FinishLate is Finish for a caller who can wait: the journal may begin up to 10 ms later, so that several changes share a
	// commit. Where the server cannot be reached, it tries again for as long as a call of the journal may take, since a record
	// whose end is given up stays pending. Durable on return. Close waits for it.
	// Errors: as Finish.
	FinishLate(ctx context.Context, rec Record) error

	// FinishesLate returns the journal itself. Of a type that embeds a LateFinisher it returns what is embedded, so that this
	// type is taken for none, and its own Finish is not passed by.
	FinishesLate() Journal
}

// DueTimes is a journal that knows from an index what is due when, so that Run need not look at all that waits. It is
// optional: find it with [As].
type DueTimes interface {
	// DueTimes returns for each origin and Needs of the pending records that q selects when the first of them is due, in any order:
	// the earliest NextAttempt, which may be past or zero. Records with a lease that lasts are left out. Of q, Account,
	// AllAccounts, Origin and Needs count, and DueBy for DueTime.Next. It reads as many records as there are origins, accounts,
	// Needs and leases, however many are pending.
	// Errors: ErrClosed, the context's, or the journal's own.
	DueTimes(ctx context.Context, q Query) ([]DueTime, error)
}

// DueTime says when the first pending record of an origin, with these needs, is due.
type DueTime struct {
	Origin string // as Record.Origin
	// Needs is the text of Record.Needs, by which Claim takes no others (Query.Needs). A [Claimer] sets it, so that a client claims
	// only what it can act on. Empty: those of all needs together.
	Needs string
	At    time.Time // its NextAttempt; zero is at once
	// Next is the earliest NextAttempt after Query.DueBy; zero if there is none, or if DueBy is zero. A journal that is no
	// Claimer sets it: there a record that is being run looks as one that is due, and would hide what falls due after it. A
	// Claimer need not.
	Next time.Time
}

// Notifier is a journal through which the processes that share it wake each other, so that Run sends at once what another
// process has enqueued. It is optional: find it with [As]. It promises nothing: a wake may be lost, late or in vain, and may
// come back to who gave it. So whoever listens looks at the journal now and then all the same.
type Notifier interface {
	// Notify lets all who listen, in any process, look at the journal. Call it when something is due that was not, after the
	// write. It returns at once, and never fails: the journal tells the others by itself, once for all calls within 100 ms,
	// the first of them at once. Close sends what is left. After Close it does nothing.
	Notify()

	// Listen calls heard(nil) whenever something may be due that was not: first when it begins to hear, then for each
	// notification, and again after a time in which it did not hear. Where it does not hear, it calls heard with the reason,
	// once, and goes on trying. It believes that it hears when a message of its own has come back, and nothing else.
	// One goroutine calls heard, which must return soon. Any number of Listens may be under way.
	//
	// It returns when ctx has ended, with its error, or when the journal is closed, with ErrClosed.
	Listen(ctx context.Context, heard func(err error)) error
}

// Results is a journal that finds what is owed to oncehttp.Config.OnResult (Query.Owed) without reading the others. It is optional:
// find it with [As].
type Results interface {
	// MarkDelivered clears Record.OwedFrom of the record with this ID if it is at this revision, which it raises. It reports
	// whether it did: false where the record has changed since, owes nothing, or is not there.
	//
	// Visible to every later call at once. Durable as a MarkReported, or sooner. If a crash loses it, the result is owed again.
	// Errors: ErrUncertain, ErrClosed, ErrCorrupt, the context's, or the journal's own.
	MarkDelivered(ctx context.Context, id ID, revision uint64) (delivered bool, err error)
}

// Prober is a journal whose records others can begin in transactions of their own, which Get does not see before the commit. It
// is optional: find it with [As]. Without one, what Get does not find is taken as absent.
type Prober interface {
	// Probe is Get, and proves absence: it waits for open transactions that have begun the record, as Begin does, and returns
	// ErrNotFound only if there are none. It leaves nothing in the journal.
	// Errors: ErrUncertain where such a transaction stays open for longer than the journal waits; those of Get.
	Probe(ctx context.Context, id ID) (Record, error)
}

// As finds what a journal can do beyond [Journal]: it returns j as a T, or the
// first journal below j that is a T. A journal that wraps another shows it by a
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

// Attach returns the attached value, which the first call creates. It panics if create is nil, and has attached nothing then.
func (a *Attachment) Attach(create func() any) any {
	if create == nil {
		panic("persist: Attach without a function")
	}
	a.once.Do(func() { a.value = create() })
	return a.value
}
