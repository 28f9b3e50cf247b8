package intent

import (
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides the error of a call without a begun operation.

// FailedBegin holds the knowledge about a failed Begin.
type FailedBegin struct {
	Uncertain bool // the journal may have the record, or may get it
	NotAsked  bool // the journal was not asked to write
	TooLarge  bool // the record is too large for the journal
	Shared    bool // other processes use the journal
	Key       CallKey
}

// Looks reports whether a call with a failed Begin reads the records of its keys for its error. So it does, unless the write is uncertain, if the journal was
// not asked, or nobody else can write under the key. Otherwise the outcome is unknown: the record may be there, or a lagging server of a shared journal may
// answer the read. (Invariant 19.)
func (f FailedBegin) Looks() bool {
	return !f.Uncertain && (f.Key.Random || f.NotAsked || !f.Shared)
}

// Why returns the trouble named by the error after a failed Begin, if the call may say more than "unknown" (Looks): nothing was begun, and so nothing was sent.
// A record that is too large would be so again. (Invariants 9 and 19.)
func (f FailedBegin) Why() operation.Trouble {
	if f.TooLarge {
		return operation.IsTooLarge
	}
	return operation.IsNotSent
}

// NamesByRecord reports whether the error of a failed Begin with an unknown outcome names the key only after a read of the record under it: only some
// records allow it. (Invariant 17.)
func (f FailedBegin) NamesByRecord() bool { return !f.Key.Named(SeesNothing) }

// TakesKept reports whether a call with a failed Begin returns the recorded answer of an earlier operation under its key. says is its reaction to
// that record. Only a whole answer needs no write. Only a call that names the key gets it: an operation under a made key is another call's.
// (Invariants 5 and 17.)
func (c CallKey) TakesKept(says operation.Opening) bool {
	return !c.Keyless && says == operation.GivesAnswer
}

// FailedPlace holds the knowledge about a call whose operation got no place.
type FailedPlace struct {
	Unnamed   bool // the call names no key, and nobody has looked yet for operations of the same request
	Forgotten bool // an operation may have been forgotten at the place: no error of the journal
}

// PlaceError is the error of such a call.
type PlaceError uint8

// The errors. The zero value is the cautious one.
const (
	PlaceUnclear  PlaceError = iota // the outcome is unknown, and no made key is named
	LooksAtKeys                     // the verdict on the records of its keys
	AsFailedBegin                   // FailedBegin decides
)

// Says returns the kind of error for a call without a place (account and key) for its operation in the journal. Nothing was begun or sent. Without a named key
// (Unnamed) nobody has looked yet for the same request, so nothing more is said. (Invariants 17, 19 and 38.)
func (f FailedPlace) Says() PlaceError {
	switch {
	case f.Unnamed:
		return PlaceUnclear
	case f.Forgotten:
		return LooksAtKeys
	}
	return AsFailedBegin
}

// CallKey is the key of a call, as far as its errors depend on it.
type CallKey struct {
	Keyless bool // the call named no key: the key was made for it, or belongs to an operation of the same request
	Random  bool // it was made at random for this call: no other call has begun it
}

// Named reports whether an error with an unknown outcome names the key, so that its caller can go on with the operation. at is what the journal shows under the
// key. A made key is not named if its operation has ended, since it may be forgotten with the answer, or if another call runs it. Nor is one before the look
// for the same request: another operation of it may exist, and a second one would be begun under the named key. (Invariants 17 and 19.)
func (c CallKey) Named(at Glance) bool {
	switch {
	case !c.Keyless, at == SeesNone, at == SeesOpen:
		return true
	case at == SeesRunning, at == HasNotLooked:
		return false
	}
	return c.Random
}

// Glance is a look at one key.
type Glance uint8

// The glances. The zero value is the cautious one.
const (
	SeesNothing  Glance = iota // the journal did not say
	SeesNone                   // there is no record
	SeesOpen                   // there is one, not ended
	SeesEnded                  // there is one, ended
	SeesRunning                // another call, or process, runs its operation
	HasNotLooked               // nobody has looked yet for operations of the same request
)

// Unlooked holds the knowledge of such a call before it looks at its keys.
type Unlooked struct {
	Unread    bool // its key could not be read: an operation may exist under it
	Uncertain bool // the journal may have a record of the call, or may get it
	Key       CallKey
}

// Says returns the statement of an error before any read of the call's keys: the call has begun nothing. No other call has begun a random key.
// (Invariants 17 and 19.)
func (u Unlooked) Says() Saying {
	switch {
	case u.Unread || u.Uncertain:
		return SaysUnclear
	case u.Key.Random:
		return SaysNothing
	}
	return LooksFirst
}

// Watched returns the standing that a call reports for a key that it has read. begun: another call has begun the key meanwhile, so that "no record" is not true
// any more. (Invariants 13 and 19.)
func Watched(found operation.Standing, begun bool) operation.Standing {
	if begun && found == operation.None {
		return operation.Unclear
	}
	return found
}

// AtKey holds the findings of such a call at one of its keys.
type AtKey struct {
	Glance    Glance
	Unended   bool // an earlier call has given its answer, and its end was not waited for
	Running   bool // another call of this process runs it
	Strange   bool // it may be another caller's
	Keyless   bool // the call names no key
	Leased    bool // another process has it
	MayAppear bool // a Begin of it was lost
}

// Saying is the statement of such a call.
type Saying uint8

// The sayings. The zero value is the cautious one.
const (
	SaysUnclear       Saying = iota // the outcome is unknown
	SaysBusy                        // likewise, since somebody runs it
	SaysAnothers                    // it may be another caller's
	SaysBusyElsewhere               // somebody runs it, and the key is not named
	SaysRecord                      // the verdict on the record or, if a person has begun another operation in its place (IsReplacedBy), on that one
	SaysNothing                     // nothing stands there: the next key is looked at
	LooksFirst                      // nothing yet: it looks at its keys
)

// Says returns the statement of an error about one key of a call without a begun operation, by the record there and by other calls under way.
// (Invariants 17 and 19.)
func (k AtKey) Says() Saying {
	found := k.Glance == SeesOpen || k.Glance == SeesEnded
	switch {
	case k.Strange && (k.Running || found):
		return SaysAnothers
	// A call of this process has it, or has given its answer before the record.
	case k.Unended || k.Running:
		return SaysBusy
	case k.Glance == SeesOpen && k.Keyless && k.Leased:
		return SaysBusyElsewhere
	case found:
		return SaysRecord
	// The journal did not say, or a lost begin may still show.
	case k.Glance != SeesNone || k.MayAppear:
		return SaysUnclear
	}
	return SaysNothing
}

// Similar holds the findings of a call without a key, whose body is not known, at an operation under a generated key that is maybe of the same request. That
// one is unresolved, or unreported.
type Similar struct {
	Strange bool // it may be another caller's
	Noted   bool // its Begin was lost: the journal has no record of it
	Leased  bool // another process has it
}

// Says returns the statement of an error about an operation, maybe of the same request, for a call without a key and without a begun operation. Noted: only the
// note of a begin with an unknown result tells of it. (Invariants 17 and 19.)
func (s Similar) Says() Saying {
	switch {
	case s.Strange:
		return SaysAnothers
	case s.Noted:
		return SaysUnclear
	case s.Leased:
		return SaysBusyElsewhere
	}
	return SaysRecord
}

// LeavesBegun reports whether a call takes back the operation that it has just created, unsent. stood: another operation of the same effect stood in its way;
// the call went on only to join the record of its own key, and that record is gone since. (Invariants 17, 46, 54 and 64.)
func LeavesBegun(created, stood bool) bool { return created && stood }

// Lookalike holds the knowledge of a call without a key about an operation, maybe of the same request.
type Lookalike struct {
	OwnKey     bool // it has the key made for this call: Begin finds it
	OtherScope bool // it has another place
	Undoubted  bool // a call of this process runs it, and nothing was in doubt before
	Leased     bool // another process has it
}

// InTheWay is the reason for the end of such a call: the same request must not take effect twice.
type InTheWay uint8

// The reasons.
const (
	NotInTheWay InTheWay = iota
	Unresolved           // it has not ended
	Unreported           // a pass ended it, and no caller was told
	SentElsewhere
)

// InTheWay returns the reason why an operation under a generated key stops a call without a key, maybe of the same request: it would take effect twice.
// NotInTheWay: the call may begin its own. (Invariants 17 and 19.)
func (l Lookalike) InTheWay(o *operation.Op) InTheWay {
	ended := o.State.Final()
	switch {
	// OwnKey: Begin finds it. OtherScope: a header selects another account. Ended and not Unreported: a caller knows the end. Undoubted: its call here
	// tells the end to its callers, and no earlier send is in doubt, so that this call is a second order, and no repetition.
	case l.OwnKey, l.OtherScope, ended && !o.Unreported, !ended && l.Undoubted:
		return NotInTheWay
	case ended:
		return Unreported
	case l.Leased:
		return SentElsewhere
	}
	return Unresolved
}

// GlanceOf returns the state of a record under one of the keys of a call, as the call sees it: ended, or open. (Invariant 19.)
func GlanceOf(rec *persist.Record) Glance {
	if rec.State.Final() {
		return SeesEnded
	}
	return SeesOpen
}
