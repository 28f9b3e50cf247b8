package operation

import (
	"cmp"
	"time"

	"github.com/oncehttp/oncehttp/internal/pauses"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Op is an operation as its record says, as far as the decisions of a drive depend on it. Two of them are comparable with ==.
type Op struct {
	State    persist.State
	Hold     persist.HoldReason
	Standing Standing // StandingOf the record

	Protected   bool // a key that counts travels with each send
	Generated   bool // its key was generated
	Business    bool // by Config.NewKey, so that an equal request has it, too
	Enqueued    bool // a later send was promised
	ServerToken bool // the server hands out its key
	Token       bool // that is there

	MaybeSent   bool
	FirstSent   time.Time
	SendUntil   time.Time // no send of it is on its way after that
	SendBefore  time.Time // its first send may not start later; zero: no bound
	NextAttempt time.Time

	// Window is the time after FirstSent in which the server is trusted to know the key: as the record or the profile of that name says,
	// whichever is shorter.
	Window   time.Duration
	Pauses   persist.Pauses // never zero
	Attempts int
	Sends    int

	Answered bool // an answer is recorded
	Status   int  // of that
	Dropped  bool // it is recorded without its body
	AskAgain bool // MayAskAgain of it

	Hides bool // by the facts under which it was begun a 2xx proves nothing by its status

	Unreported bool // no caller with the key was told of the end
}

// UsualPauses are the pauses for which the zero persist.Pauses stand. They never change: records of earlier versions mean these.
var UsualPauses = persist.Pauses{Attempts: 6, First: 30 * time.Second, Most: 15 * time.Minute}

// OpOf returns the operation of a record. window is that of the profile by which answers are read; zero if none is known.
func OpOf(rec *persist.Record, window time.Duration) Op {
	op := Op{
		State: rec.State, Hold: rec.HoldReason, Standing: StandingOf(rec),
		Protected: rec.Protected, Generated: rec.Generated, Business: rec.Business, Enqueued: rec.Enqueued,
		ServerToken: rec.ServerToken, Token: rec.Token != "",
		MaybeSent: rec.MaybeSent, FirstSent: rec.FirstSent, SendUntil: rec.SendUntil, SendBefore: rec.SendBefore, NextAttempt: rec.NextAttempt,
		Window: rec.Window, Pauses: cmp.Or(rec.Pauses, UsualPauses), Attempts: rec.Attempts, Sends: rec.Sends, Unreported: rec.Unreported, Hides: profile.HidesOutcomes(rec.Facts),
	}
	if window > 0 {
		op.Window = min(op.Window, window)
	}
	if a := rec.Answer; a != nil {
		op.Answered, op.Status, op.Dropped, op.AskAgain = true, a.Status, a.BodyDropped, MayAskAgain(a) && op.Standing != Refused
	}
	return op
}

// WantsToken reports whether the operation needs a token before it may be sent: it has none, or was provably never sent, and
// the one that it has may be too old.
func (o *Op) WantsToken() bool { return o.ServerToken && !o.MaybeSent && (!o.Token || o.Sends == 0) }

// TooOld reports whether the time for the operation's first send is over.
func (o *Op) TooOld(now time.Time) bool { return !o.SendBefore.IsZero() && now.After(o.SendBefore) }

// sendableUntil returns the last moment at which a send may start, for a client of usual time limits; zero if there is none. marked reports
// whether it may have been sent.
func (o *Op) sendableUntil(marked bool) time.Time {
	if marked {
		return o.FirstSent.Add(o.Window - UsualMargin(o.Window))
	}
	return o.SendBefore
}

// pause returns the time to wait after a failed drive, where until is the end of the time for sends. It is at most half of the time that
// is left, so that the last hours are used.
func (o *Op) pause(attempts int, now, until time.Time) time.Duration {
	drives := (o.Attempts + attempts + o.Pauses.Attempts - 1) / o.Pauses.Attempts
	pause := pauses.After(max(drives, 1), o.Pauses.First, o.Pauses.Most)
	if left := until.Sub(now); left > 0 && !until.IsZero() {
		pause = max(min(pause, left/2), min(o.Pauses.First, leastPause))
	}
	return pause
}

// leastPause bounds a pause at the end of the time for sends from below, unless the operation's own first pause is shorter.
const leastPause = 500 * time.Millisecond
