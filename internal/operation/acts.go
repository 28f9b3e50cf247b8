package operation

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides the acts of a person on an existing operation, and their results.

// Refusal is the reason of an act without an effect.
type Refusal uint8

// The refusals.
const (
	MayAct       Refusal = iota // none
	HasMoved                    // the operation has changed since the person saw it
	HasEnded                    // it has ended
	IsLeased                    // another process has it
	NotAbsent                   // it is not settled as absent, and no lookup can do so
	IsSending                   // a send of it may be on its way
	IsReplaced                  // another operation has replaced it
	IsWitnessed                 // an event of the API proves that it happened
	IsErased                    // its request was erased
	NotEnded                    // it is pending or held
	IsUnreported                // no caller with its key was told of its end
	IsOwed                      // its end is owed to OnResult
	IsGoingOn                   // an operation before or after it is not final
	IsInWindow                  // the API may still know its key, or its answer is kept
	IsBeside                    // operations of other scopes stand beside it
)

// Ending holds the facts behind a Settle or Abandon.
type Ending struct {
	Moved    bool // Moved has a reason
	Leased   bool // another process has a lease of it
	Over     bool // another process is named as its owner: once Leased is false, its lease is over, and nobody has had the operation since
	Absent   bool // it is to be settled as absent
	Happened bool // it is to be settled as happened
	Now      time.Time
}

// MayEnd returns the reason against a Settle or Abandon. An operation already settled as absent has ended, however it was seen. Absent is not
// said while a send of a process that lost its lease may be on its way. (Invariants 2, 8, 31 and 56.)
func (o *Op) MayEnd(e Ending) Refusal {
	switch {
	case e.Moved && o.Standing != Absent:
		return HasMoved
	case o.State.Final():
		return HasEnded
	case e.Leased:
		return IsLeased
	case o.EndsByEvidence() && !e.Happened:
		return IsWitnessed
	case e.Absent && e.Now.Before(o.DesertedUntil(e.Over)):
		return IsSending
	}
	return MayAct
}

// Assigning holds the facts behind an Assign.
type Assigning struct {
	Moved  bool // Moved has a reason
	Leased bool // another process has a lease of it
	Beside bool // operations of other scopes stand beside it: they would stand at the places of its account without it
}

// MayAssign returns the reason against an Assign, also of an operation that has ended: its key is used in the account. (Invariants 12, 31, 38 and 57.)
func (o *Op) MayAssign(a Assigning) Refusal {
	switch {
	case a.Moved:
		return HasMoved
	case o.Erased:
		return IsErased
	case a.Leased:
		return IsLeased
	case a.Beside:
		return IsBeside
	}
	return MayAct
}

// DesertedUntil returns the end of the time in which a send may be on its way of a process that lost its lease and may be frozen; zero if
// there is none. over is as in Ending. The drive of another process since then does not end that send. (Invariant 31.)
func (o *Op) DesertedUntil(over bool) time.Time {
	if over { // never before o.Deserted: it never moves back
		return o.SendUntil
	}
	return o.Deserted
}

// IsFinalStatus reports whether a person may name a status as that of the API's answer: a success, the redirect to it, or a refusal. A 5xx ends
// nothing. (Invariants 4 and 31.)
func IsFinalStatus(status int) bool {
	switch {
	case status == http.StatusSeeOther:
		return true
	case status >= 500:
		return false
	}
	return status >= 400 || status >= 200 && status < 300
}

// Settled returns the operation after a Settle. status is the status of the answer named by the person; zero: there is none. (Invariants 2 and 4.)
func (o Op) Settled(effect persist.Effect, status int) Op {
	o.State, o.Hold, o.NextAttempt = persist.StateSettled, "", time.Time{}
	o.Standing = StandingOf(&persist.Record{State: o.State, Effect: effect})
	o.Answered, o.Status, o.Dropped, o.AskAgain = status != 0, status, false, false // the answer of a held operation is not its end
	return o
}

// Abandoned returns the operation after an Abandon. (Invariant 9.)
func (o Op) Abandoned() Op {
	o.State, o.Hold, o.NextAttempt = persist.StateAbandoned, "", time.Time{}
	o.Standing = StandingOf(&persist.Record{State: o.State})
	return o
}

// EverSent reports whether the operation was sent at some time, or may have been: there may be something to undo, and an event may be about it.
// (Invariants 2, 56 and 61.)
func (o *Op) EverSent() bool { return o.MaybeSent || o.Sends > 0 }

// HeldFor returns the operation held by an act: nothing more is sent. (Invariants 31 and 61.)
func (o Op) HeldFor(why persist.HoldReason) Op {
	o.State, o.Hold, o.NextAttempt = persist.StateHeld, why, time.Time{}
	return o
}

// IsActedOn reports whether a caller of plain HTTP, or a person's act, goes on with a held operation or ends it. The word of Config.Reconcile
// may be out of date a moment later: an undo takes an effect back, and a Rekey begins the operation anew. A person who took a settlement back ends
// it. (Invariant 31.)
func (o *Op) IsActedOn() bool {
	return o.IsForCaller() || o.Hold == persist.HoldUndo || o.Hold == persist.HoldReopened || o.isRekeyed()
}

// IsForCaller reports whether it is held until a call with its key goes on with it: a caller of plain HTTP may act on its answer. (Invariant 29.)
func (o *Op) IsForCaller() bool { return o.Hold == persist.HoldCaller }

// isRekeyed reports whether it is held for an unfinished Rekey. (Invariant 31.)
func (o *Op) isRekeyed() bool {
	return o.Hold == persist.HoldRekey || o.Hold == persist.HoldRekeyHeld
}

// MayLookBefore returns the reason against the hold and the lookup of a Rekey. finds: the API's lookup finds everything after some time. (Invariants 12 and 62.)
func (o *Op) MayLookBefore(leased, finds bool) Refusal {
	switch {
	case leased:
		return IsLeased
	case o.EndsByEvidence():
		return IsWitnessed
	case !finds:
		return NotAbsent
	}
	return MayAct
}

// HeldToRekey returns the operation held by a Rekey before its lookup. If write is false, the record is so already. The API's lookup counts from at on.
// (Invariants 7 and 62.)
func (o Op) HeldToRekey(at time.Time) (held Op, write bool) {
	if o.isRekeyed() && !o.NextAttempt.IsZero() { // zero: a restored journal has reset it
		return o, false
	}
	why := persist.HoldRekeyHeld
	if o.State == persist.StatePending || o.Hold == persist.HoldRekey {
		why = persist.HoldRekey
	}
	held = o.HeldFor(why)
	held.NextAttempt = at
	return held, true
}

// SentBy returns the end of the latest send of an operation held now. usual is the value for a record without SendUntil. (Invariants 31 and 62.)
func (o *Op) SentBy(now, usual time.Time) time.Time {
	by := o.SendUntil
	if by.IsZero() && o.MaybeSent {
		by = usual
	}
	if by.Before(now) {
		return now
	}
	return by
}

// RekeyFound reports whether a lookup settles a held operation as absent. (Invariants 50 and 62.)
func RekeyFound(f classify.Finding) bool { return f == classify.FindingNone }

// NotRekeyed returns the operation after a Rekey with a finding. before is the operation before that Rekey. A pending operation is pending
// again: its own key is sent within its window. The first reason of a hold is lost if an earlier Rekey replaced it: then a person or
// Config.Reconcile settles the operation. (Invariants 3 and 62.)
func (o Op) NotRekeyed(before Op) Op {
	o.State, o.Hold, o.NextAttempt = before.State, before.Hold, before.NextAttempt
	if !before.isRekeyed() {
		return o
	}
	o.NextAttempt = time.Time{}
	switch begun := before.Replaces && !before.Enqueued; { // by another Rekey, which goes on with it
	case before.Hold == persist.HoldRekeyHeld:
		o.Hold = persist.HoldUnclear
	case !begun:
		o.State, o.Hold = persist.StatePending, ""
	}
	return o
}

// Waits reports whether an operation begun by a Rekey still waits for its release. (Invariant 7.)
func (o *Op) Waits() bool { return o.Hold == persist.HoldRekey && !o.Enqueued }
