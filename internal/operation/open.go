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
	Replaced   bool      // a person began another operation in its place, and that one took effect, or may: see intent.IsReplacedBy
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
	SaysSkipped                     // an error: nothing was sent under the key, and nothing stands for the later generation that was about to be
	SaysContradicted                // an error with an unknown effect: an event of the API proves what its answer refuses
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

// Open returns the reaction of a call to an existing operation under its key: an error, the answer, or to go on with it. The order counts: what may not be compared, or
// shown, comes first. (Invariants 1, 4, 8, 9, 33, 54 and 57.)
func (c Call) Open(o *Op) Opening {
	switch {
	case c.Unreadable:
		return SaysUnreadable
	case c.Elsewhere:
		return SaysElsewhere
	case o.Erased:
		return SaysErased
	case c.Strange:
		return SaysStranger
	case o.Skipped && c.Replaced: // whatever the request
		return SaysReplaced
	case o.Skipped:
		return SaysSkipped
	case c.Request == Incomparable:
		return SaysIncomparable
	case c.Request != Same:
		return SaysOther
	case c.Replaced && o.HadNoEffect():
		return SaysReplaced
	case c.Enqueues:
		return Promises
	case o.State.Final():
		return openFinal(o)
	case IsUnread(o):
		return ReadsAgain
	case o.State == persist.StateHeld && !o.IsForCaller():
		return SaysHeld
	case c.Keyless:
		return SaysInFlight
	}
	return Adopts
}

// Tells reports whether a call with this reaction tells its caller how the operation ended, if it has. That is noted in the record first (NotesTold). (Invariant 55.)
func (o Opening) Tells() bool {
	switch o {
	case SaysUnreadable, SaysElsewhere, SaysErased, SaysStranger, SaysIncomparable, SaysReplaced, SaysSkipped, SaysContradicted, SaysHeld, SaysInFlight, ReadsAgain, Promises, Adopts:
		return false
	}
	return true
}

// NotesTold reports whether a call notes in the record that it tells of this end (Record.Told), before it does. A person may take the end back, or begin the operation
// once more, and must know. (Invariant 55.)
func NotesTold(rec *persist.Record) bool {
	return !rec.Told && (rec.State == persist.StateSettled || StandingOf(rec) == Refused)
}

// openFinal returns the reaction of a call with the same request to an operation that has ended. A refusal that an event of the API contradicts is not handed out: its caller
// might go on under a new key. A settlement may have no answer (Status 0). (Invariants 1, 4, 9 and 56.)
func openFinal(o *Op) Opening {
	whole := o.Answered && !o.Dropped
	if o.Standing == Refused && o.Witnessed {
		return SaysContradicted
	}
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

// Adopt returns the write before an existing operation is sent, or the reason not to send it. claimed: this client's claim (the take-over of a due record) has marked it as
// maybe sent already. Only a first send can be too late (IsLate). (Invariants 7, 8 and 56.)
func Adopt(o *Op, now time.Time, claimed bool) Mark {
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

// Marked returns the operation as written before a send: pending, with MaybeSent unless a token comes first. first: its first send; until: the send's end. (Invariant 7.)
func (o Op) Marked(first, until time.Time) Op {
	o.State, o.Hold = persist.StatePending, ""
	if !o.MaybeSent && !WantsToken(&o) {
		o.MaybeSent, o.FirstSent = true, first
	}
	if o.MaybeSent && until.After(o.SendUntil) {
		o.SendUntil = until
	}
	return o
}

// Begun returns a new operation for its Begin by a call that sends it at once: with MaybeSent, a first send at first, and its end by until. One that waits for its token
// is not marked, and its first send is not later than last. (Invariants 7 and 8.)
func (o Op) Begun(first, until, last time.Time) Op {
	if o = o.Marked(first, until); !o.MaybeSent {
		o.SendBefore = last
	}
	return o
}

// After adds to g what earlier attempts left: a possible effect, or a refusal. s is of the record before it was marked MaybeSent for this send. (Invariant 24.)
func (g Given) After(s *Sending) Given {
	g.Doubted = s.MaybeSent
	g.Refused = !s.MaybeSent && s.Sends > 0 // else the mark would stand
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

// ProspectOf returns what a pass will do with an unfinished operation: send it, hold or settle it, or wait for something. It is for a client with usual time limits; the
// window of another client may be over sooner. A record marked as maybe sent is in doubt (true). A pass calls it first; Adopt and the drive then decide by the same
// functions. (Invariants 8, 28, 31, 49, 51 and 56.)
func ProspectOf(o *Op, now time.Time) Prospect {
	switch {
	case o.State == persist.StateHeld && o.IsActedOn():
		return WaitsForWord
	case o.State == persist.StateHeld:
		return WaitsForTruth
	case o.NextAttempt.After(now):
		return WaitsForTime
	}
	switch Adopt(o, now, false) {
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

// SendsBefore returns the number of sends before, from the recorded one: at least one if a process may have died before it counted its send. (Invariant 24.)
func (g Given) SendsBefore(recorded int) int {
	if g.Doubted {
		return max(recorded, 1)
	}
	return recorded
}

// MayRecall reports whether somebody with the key and the request may have the recorded answer without a call: it is the whole answer of a confirmed operation, a caller was
// told of the end, no other operation was begun in its place, no event of the API contradicts it, and no note of the telling (NotesTold) has to be written first. (Invariants
// 4, 14, 17, 54, 55 and 56.)
func MayRecall(rec *persist.Record) bool {
	op := OpOf(rec, 0)
	return rec.State == persist.StateConfirmed && rec.ReplacedBy == "" && rec.Answer != nil && !rec.Answer.BodyDropped && !rec.Unreported && !NotesTold(rec) && !op.IsContradicted()
}
