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
	Shared    bool // other processes use the journal
	Key       CallKey
}

// Looks reports whether the call looks at the records of its keys, and judges by them. Otherwise the outcome is unknown: the record may be there, or
// a lagging server of a shared journal may answer the look. (Invariant 19.)
func (f FailedBegin) Looks() bool {
	return !f.Uncertain && (f.Key.Random || f.NotAsked || !f.Shared)
}

// CallKey is the key of a call, as far as its errors depend on it.
type CallKey struct {
	Keyless bool // the call named no key: the key was made for it, or belongs to an operation of the same request
	Random  bool // it was made at random for this call: no other call has begun it
}

// Named reports whether the error of a call with an unknown outcome names the key. A call with the named key goes on with the operation. The key of
// an ended operation is not named: it may be forgotten with the answer, like that of an operation run, and maybe ended, by another call. Before the
// look for the same request, another operation of it may stand: under the named key a second one would be begun. (Invariants 17 and 19.)
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
)

// Says returns the statement of such a call. (Invariants 17 and 19.)
func (k AtKey) Says() Saying {
	found := k.Glance == SeesOpen || k.Glance == SeesEnded
	switch {
	case k.Strange && (k.Running || found):
		return SaysAnothers
	case k.Unended || k.Running:
		return SaysBusy
	case k.Glance == SeesOpen && k.Keyless && k.Leased:
		return SaysBusyElsewhere
	case found:
		return SaysRecord
	case k.Glance != SeesNone || k.MayAppear:
		return SaysUnclear
	}
	return SaysNothing
}

// LeavesBegun reports whether a call takes back the operation that it has just begun, and sends nothing of it. stood: another operation stood in its way, and it went on
// only because a record of its own key stood, which is gone since. (Invariants 17, 46, 54 and 64.)
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

// InTheWay returns the reason of an operation under a generated key to stop a call of the same request without a key. (Invariants 17 and 19.)
func (l Lookalike) InTheWay(o *operation.Op) InTheWay {
	ended := o.State.Final()
	switch {
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
