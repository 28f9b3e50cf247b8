package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides what a call, or a pass, does with a record that stands.

// Call is what a call knows of the record that stands under its key.
type Call struct {
	Unreadable bool      // the record is sealed
	Elsewhere  bool      // it is of another scope than the request
	Strange    bool      // it may be another caller's
	Request    Knowledge // of the two requests: Same, Other or Incomparable
	Keyless    bool      // the call names no key, and another process sends the operation
}

// Opening is what a call does with a record.
type Opening uint8

// The openings. All but the last four end the call without a send, and without a change of the record.
const (
	SaysUnreadable   Opening = iota // an error: nothing can be said
	SaysElsewhere                   // none: the operation has another place
	SaysStranger                    // an error that tells nothing
	SaysIncomparable                // an error that names the difference
	SaysOther                       // an error: the key belongs to another request
	SaysGone                        // an error: its answer is not kept
	SaysMismatch                    // an error: the server kept the key for another request
	SaysAbandoned                   // an error
	SaysAbsent                      // an error: it was settled as absent
	SaysHappened                    // an error: it was settled as happened, without an answer
	SaysHeld                        // an error
	SaysInFlight                    // an error: another process sends it
	GivesAnswer                     // the recorded answer
	AsksAgain                       // the server is asked again for an answer that was too large to keep
	ReadsAgain                      // the recorded answer may be read by this client; else it says that the operation is held
	Adopts                          // the call goes on with the operation
)

// Open returns what a call does with the operation that stands under its key.
func (o *Op) Open(c Call) Opening {
	switch {
	case c.Unreadable:
		return SaysUnreadable
	case c.Elsewhere:
		return SaysElsewhere
	case c.Strange:
		return SaysStranger
	case c.Request == Incomparable:
		return SaysIncomparable
	case c.Request != Same:
		return SaysOther
	case o.State.Final():
		return o.openFinal()
	case o.State == persist.StateHeld && o.Hold == persist.HoldUnread && o.Answered:
		return ReadsAgain
	case o.State == persist.StateHeld && o.Hold != persist.HoldCaller:
		return SaysHeld
	case c.Keyless:
		return SaysInFlight
	}
	return Adopts
}

// openFinal is Open of an operation that has ended.
func (o *Op) openFinal() Opening {
	whole := o.Answered && !o.Dropped
	switch o.State {
	case persist.StateMismatched:
		return SaysMismatch
	case persist.StateAbandoned:
		return SaysAbandoned
	case persist.StateSettled:
		switch {
		case o.Standing == Absent:
			return SaysAbsent
		case whole && o.Status != 0:
			return GivesAnswer
		}
		return SaysHappened
	}
	switch {
	case whole:
		return GivesAnswer
	case o.Answered && o.AskAgain:
		return AsksAgain
	}
	return SaysGone
}

// Mark is what is written before a drive of an operation that stands.
type Mark uint8

// The marks.
const (
	Marks    Mark = iota // Marked
	MarkedBy             // nothing: the claim has marked it
	IsLate               // Overdue: the time for its first send is over
)

// Adopt returns what is written before a drive. claimed reports whether the claim that the driver has, has marked the operation.
func (o *Op) Adopt(now time.Time, claimed bool) Mark {
	switch {
	case !o.MaybeSent && o.TooOld(now):
		return IsLate
	case claimed:
		return MarkedBy
	}
	return Marks
}

// Marked returns the operation as it is written before a drive: with the mark that it may have been sent, unless a token comes first. first is the
// time of a first send that follows, until the time until which a send may be on its way.
func (o Op) Marked(first, until time.Time) Op {
	o.State, o.Hold = persist.StatePending, ""
	if !o.MaybeSent && !o.WantsToken() {
		o.MaybeSent, o.FirstSent = true, first
	}
	if o.MaybeSent && until.After(o.SendUntil) {
		o.SendUntil = until
	}
	return o
}

// Begins returns what a drive of this operation knows of its earlier attempts, before it is marked.
func (o *Op) Begins(g Given) Given {
	g.Doubted = o.MaybeSent
	g.Refused = !o.MaybeSent && o.Sends > 0 // else the mark would stand
	return g
}
