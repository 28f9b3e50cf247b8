package operation

import (
	"cmp"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/pauses"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Op is the part of an operation's record behind the decisions of a drive. Two of them are comparable with ==.
type Op struct {
	State    persist.State
	Hold     persist.HoldReason
	Standing Standing // StandingOf the record

	Protected   bool // each send carries a key, and the API honours it
	Generated   bool // its key was generated
	Business    bool // by Config.NewKey: an equal request has the same key
	Enqueued    bool // a later send was promised
	Replaces    bool // a Rekey began it in place of another one
	ServerToken bool // the server hands out its key
	Token       bool // the server's key is in the record

	MaybeSent   bool
	FirstSent   time.Time
	SendUntil   time.Time // the end of its latest send
	Deserted    time.Time // the end of the latest send of a process that lost its lease; zero if none did
	SendBefore  time.Time // its first send may not start later; zero: no bound
	NextAttempt time.Time

	// Window is the time after FirstSent in which the server is trusted to know the key: by the record or by the profile, the shorter one.
	Window   time.Duration
	Pauses   persist.Pauses // never zero
	Attempts int
	Sends    int
	Tried    time.Time // the begin of the latest attempt on record that was sent; zero: there is none

	Answered bool // an answer is recorded
	Status   int  // its status
	Dropped  bool // it is recorded without its body
	AskAgain bool // MayAskAgain of it, and the request is there

	Witnessed bool // an event of the API proves its effect

	TakenBack bool // a person said that it was absent, and took that back

	Hides bool // by the facts of the record a 2xx proves nothing by its status

	Erased bool // a person had everything erased that no second effect depends on

	Unreported bool // no caller with the key was told of the end

	Results  bool      // its end and each new hold are owed to Config.OnResult
	OwedFrom time.Time // the time from which that is owed; zero: nothing is
}

// UsualPauses is the meaning of the zero persist.Pauses. It never changes: records of earlier versions mean these pauses.
var UsualPauses = persist.Pauses{Attempts: 6, First: 30 * time.Second, Most: 15 * time.Minute}

// OpOf returns the operation of a record. window is the window of the profile for its answers; zero if no profile is known. (Invariants 6, 14, 33 and 34.)
func OpOf(rec *persist.Record, window time.Duration) Op {
	op := Op{
		State: rec.State, Hold: rec.HoldReason, Standing: StandingOf(rec),
		Protected: rec.Protected, Generated: rec.Generated, Business: rec.Business, Enqueued: rec.Enqueued, Replaces: rec.Replaces != "",
		ServerToken: rec.ServerToken, Token: rec.Token != "",
		MaybeSent: rec.MaybeSent, FirstSent: rec.FirstSent, SendUntil: rec.SendUntil, Deserted: rec.DesertedUntil, SendBefore: rec.SendBefore, NextAttempt: rec.NextAttempt,
		Window: rec.Window, Pauses: cmp.Or(rec.Pauses, UsualPauses), Attempts: rec.Attempts, Sends: rec.Sends, Unreported: rec.Unreported, Erased: rec.Erased, Results: rec.Results, OwedFrom: rec.OwedFrom, Witnessed: rec.Evidence != nil, TakenBack: persist.TookAbsenceBack(rec.Acts), Hides: profile.HidesOutcomes(rec.Facts),
	}
	for _, a := range slices.Backward(rec.History) {
		if a.Sent {
			op.Tried = a.At
			break
		}
	}
	if window > 0 {
		op.Window = min(op.Window, window)
	}
	if a := rec.Answer; a != nil {
		op.Answered, op.Status, op.Dropped, op.AskAgain = true, a.Status, a.BodyDropped, MayAskAgain(a) && op.Standing != Refused && !rec.RequestGone()
	}
	return op
}

// WantsToken reports whether a token comes before the next send: the operation has none, or was provably never sent with a token of
// unknown age. (Invariants 7 and 60.)
func (o *Op) WantsToken() bool { return o.ServerToken && !o.MaybeSent && (!o.Token || o.Sends == 0) }

// TooOld reports whether the time for the operation's first send is over. (Invariant 8.)
func (o *Op) TooOld(now time.Time) bool { return !o.SendBefore.IsZero() && now.After(o.SendBefore) }

// sendableUntil returns the last moment for the start of a send, for a client of usual time limits; zero if there is none. marked: it may have
// been sent. (Invariant 8.)
func (o *Op) sendableUntil(marked bool) time.Time {
	if marked {
		return o.FirstSent.Add(o.Window - UsualMargin(o.Window))
	}
	return o.SendBefore
}

// LastSend returns the end of the time in which anybody may send an operation begun at created: its window, counted from its first send or, before
// that, from the latest possible one. (Invariant 8.)
func (o *Op) LastSend(created time.Time) time.Time {
	switch {
	case o.MaybeSent:
		created = o.FirstSent
	case !o.SendBefore.IsZero():
		created = o.SendBefore
	}
	return created.Add(o.Window)
}

// DueAgain returns the due time of an operation given back now without a drive, and tried again at again: not sooner than before, and not later than
// the end of the time for sends. Then it is held, and somebody is told. After that end the pause counts: who gives it back could not hold it.
// (Invariant 28.)
func (o *Op) DueAgain(again, now time.Time) time.Time {
	if until := o.sendableUntil(o.MaybeSent); until.After(now) && again.After(until) {
		again = until
	}
	if again.After(o.NextAttempt) {
		return again
	}
	return o.NextAttempt
}

// pause returns the time to wait after a failed drive. until is the end of the time for sends. The pause is at most half of the rest of that time:
// the last hours are used. (Invariants 16 and 28.)
func (o *Op) pause(attempts int, now, until time.Time) time.Duration {
	drives := (o.Attempts + attempts + o.Pauses.Attempts - 1) / o.Pauses.Attempts
	pause := pauses.After(max(drives, 1), o.Pauses.First, o.Pauses.Most)
	if left := until.Sub(now); left > 0 {
		pause = max(min(pause, left/2), min(o.Pauses.First, leastPause))
	}
	return pause
}

// leastPause bounds a pause at the end of the time for sends from below, unless the operation's own first pause is shorter.
const leastPause = 500 * time.Millisecond
