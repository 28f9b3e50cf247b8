package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides the reaction of a call, or of a pass, to an existing record.

// Call holds the knowledge of a call about the existing record of its key.
type Call struct {
	Unreadable bool      // the record is sealed
	Elsewhere  bool      // it is of another scope than the request
	Strange    bool      // it may be another caller's
	Request    Knowledge // of the two requests: Same, Other or Incomparable
	Keyless    bool      // the call names no key, and another process sends the operation: it must not join that one
	Enqueues   bool      // it is an Enqueue: it sends nothing itself
	Replaced   bool      // a person began another operation in its place, and that one took effect, or may: see IsReplacedBy
}

// Opening is the reaction of a call to a record.
type Opening uint8

// The openings. All but the last five end the call without a send, and without a change of the record.
const (
	SaysUnreadable   Opening = iota // an error: nothing can be said
	SaysElsewhere                   // no error: the operation has another place
	SaysErased                      // an error with the effect: what would be compared was erased
	SaysStranger                    // an error without details
	SaysIncomparable                // an error with the name of the difference
	SaysOther                       // an error: the key belongs to another request
	SaysReplaced                    // an error with the other operation, in whose hands the intent is
	SaysGone                        // an error: its answer is not kept
	SaysMismatch                    // an error: the server kept the key for another request
	SaysAbandoned                   // an error
	SaysAbsent                      // an error: it was settled as absent
	SaysHappened                    // an error: it was settled as happened, without an answer
	SaysHeld                        // an error
	SaysInFlight                    // an error: another process sends it
	GivesAnswer                     // the recorded answer
	AsksAgain                       // the server is asked again for an answer too large to keep
	ReadsAgain                      // the recorded answer may be read by this client; else it says that the operation is held
	Promises                        // an Enqueue: Promise decides
	Adopts                          // the call goes on with the operation
)

// Open returns the reaction of a call to the existing operation of its key. (Invariants 4, 8, 9, 33, 54 and 57.)
func (o *Op) Open(c Call) Opening {
	switch {
	case c.Unreadable:
		return SaysUnreadable
	case c.Elsewhere:
		return SaysElsewhere
	case o.Erased:
		return SaysErased
	case c.Strange:
		return SaysStranger
	case c.Request == Incomparable:
		return SaysIncomparable
	case c.Request != Same:
		return SaysOther
	case c.Replaced && o.hadNoEffect():
		return SaysReplaced
	case c.Enqueues:
		return Promises
	case o.State.Final():
		return o.openFinal()
	case o.IsUnread():
		return ReadsAgain
	case o.State == persist.StateHeld && !o.IsForCaller():
		return SaysHeld
	case c.Keyless:
		return SaysInFlight
	}
	return Adopts
}

// Tells reports whether the call tells its caller how the operation ended, if it has. (Invariant 55.)
func (o Opening) Tells() bool {
	switch o {
	case SaysUnreadable, SaysElsewhere, SaysErased, SaysStranger, SaysIncomparable, SaysReplaced, SaysHeld, SaysInFlight, ReadsAgain, Promises, Adopts:
		return false
	}
	return true
}

// hadNoEffect reports whether the operation was refused, or is absent. (Invariant 9.)
func (o *Op) hadNoEffect() bool {
	effect := o.Standing.Effect()
	return effect == persist.EffectAbsent || effect == persist.EffectRefused
}

// IsReplacedBy reports whether a person began another operation in the place of this one that took effect, or may: last, the last of those that were begun so, one
// after the other. A call with the key of this one is then told of that one: whoever hears of a refusal may go on under a key of its own. (Invariant 54.)
func (o *Op) IsReplacedBy(last *Op) bool { return o.hadNoEffect() && !last.hadNoEffect() }

// MayLag reports whether the record may be behind the answers of this process: another request has its key, and the record has not ended.
// A caller may have the answer of that one before the record. The call waits for such writes, and looks again. (Invariant 30.)
func (o *Op) MayLag(says Opening) bool {
	return !o.State.Final() && (says == SaysIncomparable || says == SaysOther)
}

// openFinal is Open for an operation in a final state. (Invariants 4 and 9.)
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
	case o.AskAgain:
		return AsksAgain
	}
	return SaysGone
}

// Mark is the write before a drive of an existing operation.
type Mark uint8

// The marks.
const (
	Marks    Mark = iota // Marked
	MarkedBy             // nothing: the claim has marked it
	IsLate               // Overdue: the time for its first send is over
	IsProven             // it is not driven: its evidence settles it as happened
)

// Adopt returns the write before a drive. claimed: the driver's claim has marked the operation. (Invariants 7, 8 and 56.)
func (o *Op) Adopt(now time.Time, claimed bool) Mark {
	switch {
	case o.EndsByEvidence():
		return IsProven
	case !o.MaybeSent && o.TooOld(now):
		return IsLate
	case claimed:
		return MarkedBy
	}
	return Marks
}

// Marked returns the operation for the write before a drive. It has MaybeSent, unless a token comes first. first is the time of a first send, and
// until the end of its latest send. (Invariant 7.)
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

// Begun returns a new operation for its Begin by a call that sends it at once. It is marked as for any drive. One that waits for its token has no
// mark, and its first send is not later than last. first and until are as for Marked. (Invariants 7 and 8.)
func (o Op) Begun(first, until, last time.Time) Op {
	if o = o.Marked(first, until); !o.MaybeSent {
		o.SendBefore = last
	}
	return o
}

// Begins adds the knowledge of earlier attempts to g, as it was before the mark. (Invariant 24.)
func (o *Op) Begins(g Given) Given {
	g.Doubted = o.MaybeSent
	g.Refused = !o.MaybeSent && o.Sends > 0 // else the mark would stand
	return g
}

// Prospect is the effect of the next pass on an unfinished operation, as far as its record tells.
type Prospect uint8

// The prospects.
const (
	WaitsForWord  Prospect = iota // none: it is held, and somebody goes on with it or ends it
	WaitsForTruth                 // none but by Config.Reconcile: it is held, and Reconcile is asked for its effect
	WaitsForTime                  // none before NextAttempt
	WaitsForClock                 // none: the clock stands before its first send
	WillBeProven                  // it is settled as happened, by its evidence
	WillBeLate                    // it is held: the time for its first send is over
	WillExpire                    // it is held: the API may have forgotten the key
	WillHaveNoKey                 // it is held: no key protects another send
	WillBeSent
)

// Prospect returns it, for a client of usual time limits. A pass asks for it, and then Adopt and the drive, which decide by the same
// functions. The window of another client may be over sooner. (Invariants 8, 28, 31, 49, 51 and 56.)
func (o *Op) Prospect(now time.Time) Prospect {
	switch {
	case o.State == persist.StateHeld && o.IsActedOn():
		return WaitsForWord
	case o.State == persist.StateHeld:
		return WaitsForTruth
	case o.NextAttempt.After(now):
		return WaitsForTime
	}
	switch o.Adopt(now, false) {
	case IsProven:
		return WillBeProven
	case IsLate:
		return WillBeLate
	}
	if !o.MaybeSent { // it is marked, or gets a token, now
		return WillBeSent
	}
	usual := Client{AttemptTimeout: usualAttempt, ClockSkew: usualSkew}
	switch usual.barTo(o, true, now) {
	case hasNoKey:
		return WillHaveNoKey
	case isExpired:
		return WillExpire
	case isBeforeFirst:
		return WaitsForClock
	}
	return WillBeSent
}

// MayRecall reports whether somebody with the key and the request may have the recorded answer without a call: it is the whole answer of a confirmed
// operation, a caller was told of the end, no other operation was begun in its place, and nothing must be noted before another one is. (Invariants 4, 14, 17, 54 and 55.)
func MayRecall(rec *persist.Record) bool {
	return rec.State == persist.StateConfirmed && rec.ReplacedBy == "" && rec.Answer != nil && !rec.Answer.BodyDropped && !rec.Unreported && !NotesTold(rec)
}
