// Package acts decides the acts on an operation in a journal: may this be done to it, and how does it stand afterwards. Clients act by their
// means, persons by a look at the record, and an API by its events. It has no I/O, no clock and no context, like package operation; each
// act is a function of a record, of an [operation.Op], or of the facts behind it.
//
// Read gate.go (may this client act), rewrite.go (a client's own write over a changed record), claim.go (its claims), seen.go (a person's look), acts.go (Settle, Abandon
// and Assign), anew.go (Redrive, Rekey and Unsettle), rekey.go (the lookup of a Rekey), erase.go, restored.go (a journal restored from a backup), witness.go
// (events of the API) and owed.go (results for OnResult). The operation in another one's place is a matter of package intent.
// The numbers are the invariants of docs/invariants.md.
package acts

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

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
	IsReopened                  // its settlement was taken back already
	IsGone                      // its request is gone: nobody could send it once more
)

// Ending holds the facts behind a Settle or Abandon.
type Ending struct {
	Moved    bool // Moved has a reason
	Leased   bool // another process has a lease of it
	Over     bool // another process is named as its owner: once Leased is false, its lease is over, and nobody has had the operation since
	Absent   bool // it is to be settled as absent
	Happened bool // it is to be settled as happened
	Undone   bool // the API is asked first to undo what was sent
	Now      time.Time
}

// MayEnd returns the reason against a Settle or Abandon, a person's end for an operation. e has the end that is asked for (Absent, Happened or Undone). One
// already settled as absent has ended, however it was seen (Moved). While a send of a process that lost its lease may be on its way, nothing is settled as
// absent or undone: that send might take effect after it. (Invariants 2, 12, 31, 56 and 61.)
func (e Ending) MayEnd(o *operation.Op) Refusal {
	switch {
	case e.Moved && o.Standing != operation.Absent:
		return HasMoved
	case o.State.Final():
		return HasEnded
	case e.Leased:
		return IsLeased
	case o.EndsByEvidence() && !e.Happened:
		return IsWitnessed
	case (e.Absent || e.Undone) && e.Now.Before(o.DesertedUntil(e.Over)):
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

// MayAssign returns the reason against an Assign, a person's word that an operation without an account belongs to one. An ended operation is assigned, too: its
// key is used in that account. (Invariants 12, 31, 38 and 57.)
func (a Assigning) MayAssign(o *operation.Op) Refusal {
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

// IsFinalStatus reports whether a person may name a status as that of the API's answer: a success, the redirect to it, or a refusal. A 5xx ends
// nothing. (Invariant 4.)
func IsFinalStatus(status int) bool {
	switch {
	case status == http.StatusSeeOther:
		return true
	case status >= 500:
		return false
	}
	return status >= 400 || status >= 200 && status < 300
}

// Settled returns the operation after a person's Settle. effect is what the person says; status is that of the API's answer as the person knows it, zero: none.
// (Invariants 2 and 4.)
func Settled(o operation.Op, effect persist.Effect, status int) operation.Op {
	o.State, o.Hold, o.NextAttempt = persist.StateSettled, "", time.Time{}
	o.Standing = operation.StandingOf(&persist.Record{State: o.State, Effect: effect})
	o.Recorded = operation.Recorded{Answered: status != 0, Status: status} // the answer of a held operation is not its end
	return o
}

// SettlesUnreported reports whether a person's settlement is noted as unreported: no caller with the key knows of it, and the same request sent again under
// another key would take effect twice. That is so for one as happened, under a generated key. told: a caller with the key is told now. (Invariant 17.)
func SettlesUnreported(o *operation.Op, effect persist.Effect, told bool) bool {
	return effect == persist.EffectHappened && o.EndsUnreported(told)
}

// Abandoned returns the operation after an Abandon: a person gives it up, nothing more is sent, and its effect stays unknown. (Invariants 9 and 31.)
func Abandoned(o operation.Op) operation.Op {
	o.State, o.Hold, o.NextAttempt = persist.StateAbandoned, "", time.Time{}
	o.Standing = operation.StandingOf(&persist.Record{State: o.State})
	return o
}

// HeldFor returns the operation held for the reason why, while a person's act on it is under way, or after it: nothing more is sent. (Invariants 31 and 61.)
func HeldFor(o operation.Op, why persist.HoldReason) operation.Op {
	o.State, o.Hold, o.NextAttempt = persist.StateHeld, why, time.Time{}
	return o
}
