// Package operation decides. From a record and the knowledge of a call it says the truth about one operation, and the next step. It has no
// I/O, no clock and no context: each decision can be read, and tested, alone.
//
// A [Drive] is one drive over one operation, from its first attempt to its end. It names each step; the driver does the step, and hands the
// result back. An [Op] is what a record says. The rest are functions of a record, or of a part of a record.
//
// Read it in the order of an operation's life: op.go, phase.go and sending.go (a record), open.go (what a call or a pass does with it), promise.go (Enqueue),
// drive.go (the parts of a drive), proofs.go and counts.go (its attempts so far), attempt.go, answers.go and token.go (the steps), limited.go (a slow limiter),
// wait.go and window.go (times), proof.go (what answers prove), write.go (the last write), end.go (the end, and the report), verdict.go (the words to callers).
// Beside a drive are package intent (other operations of the same intent) and package acts (clients' means, people, events of the API). Both know this one.
// The numbers are the invariants of docs/invariants.md.
package operation

import (
	"net/http"

	"github.com/oncehttp/oncehttp/persist"
)

// Verdict is the first statement of an error about its operation. The zero value is the cautious one.
type Verdict uint8

const (
	// Unknown: an effect is possible, or is intended and pending.
	Unknown Verdict = iota
	// NoEffect: the operation did not happen, and nothing is pending.
	NoEffect
	// Final: the operation was decided before, and this call cannot have its answer.
	Final
)

// Standing is the part of an operation's state behind a verdict. The zero value is the cautious one.
type Standing uint8

const (
	// Unclear: the journal could not be asked, its record is not durable yet, or one may still appear.
	Unclear Standing = iota
	// None: there is no record, and none will appear.
	None
	// Open: pending or held.
	Open
	// Succeeded: by the server's answer, it took effect.
	Succeeded
	// Accepted: by the server's answer, it is taken on (202). It may still fail.
	Accepted
	// Refused: the server answered with a final 4xx, or with a 2xx whose body refuses.
	Refused
	// Ended: final, without a word on its effect: the server keeps the key for another request, or no status is left.
	Ended
	// Happened: settled as happened.
	Happened
	// Absent: settled as absent.
	Absent
	// Abandoned: given up, which proves nothing.
	Abandoned

	standings
)

// Knowledge is the knowledge of a call about the request in the record. The zero value is the cautious one.
type Knowledge uint8

const (
	// KeyOnly: the call names an existing operation by its key (Lookup, Settle, Abandon, Rekey).
	KeyOnly Knowledge = iota
	// Keyless: the call names no key; the operation is another one, maybe of the same request.
	Keyless
	// Unread: the call names the key, and has begun nothing. The two requests were not compared: the error is about the key alone.
	Unread
	// Incomparable: the call names the key, and its request was compared without a result: other secret names, or a later version.
	Incomparable
	// Same: its request is the record's.
	Same
	// Other: its request is another one.
	Other

	knowledges
)

// Judge returns the verdict of an error: s is the operation's standing by its record, k how the call's request compares to the recorded one. Without a record nothing
// happened, except for a call by key alone, which expects one. If requests cannot be compared, it is Unknown; so it is for an s or k out of range. Settled as absent
// is NoEffect only for the same request. (Invariants 2, 9 and 33.)
func Judge(s Standing, k Knowledge) Verdict {
	if s >= standings || k >= knowledges {
		return Unknown
	}
	return [standings][knowledges]Verdict{
		//          KeyOnly   Keyless   Unread    Incomparable  Same   Other
		Unclear:   {Unknown, Unknown, Unknown, Unknown, Unknown, Unknown},
		None:      {Unknown, NoEffect, NoEffect, Unknown, NoEffect, NoEffect},
		Open:      {Unknown, Unknown, Unknown, Unknown, Unknown, Unknown},
		Succeeded: {Final, Unknown, Final, Unknown, Final, Final},
		Accepted:  {Final, Unknown, Final, Unknown, Final, Final},
		Refused:   {Final, Unknown, Final, Unknown, Final, Final},
		Ended:     {Final, Unknown, Final, Unknown, Final, Final},
		Happened:  {Final, Unknown, Final, Unknown, Final, Final},
		Absent:    {NoEffect, Unknown, NoEffect, Unknown, NoEffect, Final},
		Abandoned: {Unknown, Unknown, Unknown, Unknown, Unknown, Unknown},
	}[s][k]
}

// Effect returns the effect named by an error: that of the standing s only if the verdict is Final, that is decided. (Invariant 9.)
func (v Verdict) Effect(s Standing) persist.Effect {
	switch v {
	case NoEffect:
		return persist.EffectAbsent
	case Final:
		return s.Effect()
	}
	return persist.EffectUnknown
}

// Effect returns the effect of an operation by its standing; unknown while it is not final. (Invariant 9.)
func (s Standing) Effect() persist.Effect {
	switch s {
	case Succeeded, Accepted, Happened:
		return persist.EffectHappened
	case Refused:
		return persist.EffectRefused
	case Absent:
		return persist.EffectAbsent
	}
	return persist.EffectUnknown
}

// StandingOf returns the state of an operation for errors and answers, by its record; the record must be durable. (Invariants 9 and 57.)
func StandingOf(rec *persist.Record) Standing {
	if rec.Erased && rec.State == persist.StateAbandoned { // nothing is pending, and nobody can go on with it
		return Ended
	}
	switch rec.State {
	case persist.StatePending, persist.StateHeld:
		return Open
	case persist.StateMismatched:
		return Ended
	case persist.StateAbandoned:
		return Abandoned
	case persist.StateConfirmed, persist.StateSettled:
		return decided(rec)
	}
	return Unclear
}

// ToldStanding returns the standing of a durable record in an error about it. A refusal or an absence is not told of two kinds of operations: one that an event of the
// API proves, and an erased one that names its replacement, as that may have taken effect. A caller told of no effect might begin the operation once more under a new
// key. (Invariants 2, 54, 56 and 57.)
func ToldStanding(rec *persist.Record) Standing {
	s := StandingOf(rec)
	hadNoEffect := s == Absent || s == Refused
	if hadNoEffect && (rec.Evidence != nil || rec.Erased && rec.ReplacedBy != "") {
		return Ended
	}
	return s
}

// TellsMoved reports whether the error of an act on an operation that has moved since it was seen tells how the operation ended. It does not tell of an absence: the
// person who acts has seen an older state, and must look once more. (Invariants 2 and 31.)
func (s Standing) TellsMoved() bool { return s != Absent }

// decided returns the standing of a confirmed record, or of one settled by a person: its recorded effect, and for a success its status. (Invariants 2, 9 and 56.)
func decided(rec *persist.Record) Standing {
	switch effect := rec.FinalEffect(); {
	case effect == persist.EffectAbsent && rec.Evidence != nil: // an event of the API contradicts it
		return Ended
	case effect == persist.EffectAbsent:
		return Absent
	case effect == persist.EffectRefused:
		return Refused
	case effect != persist.EffectHappened:
		return Ended
	case rec.State == persist.StateSettled:
		return Happened
	}
	return happened(rec.FinalStatus())
}

// Answered returns the standing after a final answer with this status. alreadyDone: by the answer, it was done before; refused: by the body, it was refused, whatever the
// status. (Invariant 2.)
func Answered(status int, alreadyDone, refused bool) Standing {
	a := persist.Answer{Status: status, AlreadyDone: alreadyDone}
	if refused || a.Effect() == persist.EffectRefused {
		return Refused
	}
	return happened(status)
}

// Told returns the standing of an operation by the result that its caller has got before; Unclear if that tells neither a success nor a refusal. (Invariant 9.)
func Told(effect persist.Effect, status int, alreadyDone bool) Standing {
	if effect != persist.EffectHappened && effect != persist.EffectRefused {
		return Unclear
	}
	return Answered(status, alreadyDone, effect == persist.EffectRefused)
}

// happened returns the standing of an operation that took effect: Accepted after a 202, with the effect still to come, else Succeeded. (Invariant 9.)
func happened(status int) Standing {
	if status == http.StatusAccepted {
		return Accepted
	}
	return Succeeded
}
