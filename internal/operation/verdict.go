// Package operation decides: it says what is true of one operation, from its record and from what a call knows, and what has to be done
// next. It has no I/O, no clock and no context, so that each decision can be read, and tested, alone.
//
// A [Drive] is one drive over one operation, from its first attempt to its end: it names each step, and whoever drives does it and tells
// what came of it. All else are functions of a record, or of a part of one.
package operation

import (
	"net/http"

	"github.com/oncehttp/oncehttp/persist"
)

// Verdict is the first thing that an error says of its operation. The zero value is the cautious one.
type Verdict uint8

const (
	// Unknown: an effect is possible, or is intended and pending.
	Unknown Verdict = iota
	// NoEffect: the operation did not happen, and nothing is pending.
	NoEffect
	// Final: the operation was decided before, and this call cannot have its answer.
	Final
)

// Standing is the state of an operation, as far as a verdict depends on it. The zero value is the cautious one.
type Standing uint8

const (
	// Unclear: the journal could not be asked, its record is not durable yet, or one may still appear.
	Unclear Standing = iota
	// None: there is no record, and none will appear.
	None
	// Open: pending or held.
	Open
	// Succeeded: the server answered that it took effect.
	Succeeded
	// Accepted: the server answered that it has taken it on (202). It may still fail.
	Accepted
	// Refused: the server answered with a final 4xx.
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

// Knowledge is what a call knows of the request in the record. The zero value is the cautious one.
type Knowledge uint8

const (
	// KeyOnly: the call names an existing operation by its key (Lookup, Settle, Abandon, Rekey).
	KeyOnly Knowledge = iota
	// Keyless: the call names no key; the operation is another one, maybe of the same request.
	Keyless
	// Unread: the call names the key, and its request could not be compared.
	Unread
	// Incomparable: the call names the key, and whether its request is the record's cannot be told.
	Incomparable
	// Same: its request is the record's.
	Same
	// Other: its request is another one.
	Other

	knowledges
)

// Judge returns the verdict on an operation that stands so, for a call that knows this much. Without a record nothing
// happened, except for a call that expects one. Where requests cannot be compared, nothing is known of the call's. Settled as absent is "no effect" only for the request that was settled.
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

// Effect returns what the verdict on an operation that stands so says of its effect.
func (v Verdict) Effect(s Standing) persist.Effect {
	switch v {
	case NoEffect:
		return persist.EffectAbsent
	case Final:
		return s.Effect()
	}
	return persist.EffectUnknown
}

// Effect returns the effect of an operation that stands so; unknown while it is not final.
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

// StandingOf returns the standing of a record that the journal has, durably.
func StandingOf(rec *persist.Record) Standing {
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

// decided returns the standing of a confirmed or settled record.
func decided(rec *persist.Record) Standing {
	switch effect := rec.FinalEffect(); {
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

// Answered returns the standing of an operation whose final answer has this status. alreadyDone: the answer says that it
// had been done before; refused: its body says that it was refused, whatever the status.
func Answered(status int, alreadyDone, refused bool) Standing {
	a := persist.Answer{Status: status, AlreadyDone: alreadyDone}
	if refused || a.Effect() == persist.EffectRefused {
		return Refused
	}
	return happened(status)
}

// happened returns the standing of an operation that took effect, or will.
func happened(status int) Standing {
	if status == http.StatusAccepted {
		return Accepted
	}
	return Succeeded
}
