package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/pauses"
	"github.com/oncehttp/oncehttp/persist"
)

// Sending holds the sends of an operation so far, and the times for the next ones.
type Sending struct {
	Enqueued    bool // a later send was promised
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
}

// EverSent reports whether the operation was sent, or may have been. Only then an undo has something to undo, or an event can be about it. (Invariants 2, 56 and 61.)
func (s *Sending) EverSent() bool { return s.MaybeSent || s.Sends > 0 }

// TooOld reports whether SendBefore, the latest time for the operation's first send, is past; it has none if that is zero. (Invariant 8.)
func (s *Sending) TooOld(now time.Time) bool {
	return !s.SendBefore.IsZero() && now.After(s.SendBefore)
}

// firstSendBy returns SendBefore (the latest time of a first send) for an operation left to others while its call waits. One begun to be sent at once has none: it gets
// latest, so that nobody sends it long after its call. marked: it may have been sent already. (Invariants 8 and 43.)
func (s *Sending) firstSendBy(marked bool, latest time.Time) time.Time {
	if marked || !s.SendBefore.IsZero() {
		return s.SendBefore
	}
	return latest
}

// TakesBackLeft reports whether a call that gives up takes back the operation that it had left to others while it waited: it has begun it (created), and nobody has
// promised or sent it. If another process has had it since, the journal refuses that write. (Invariants 2, 18 and 43.)
func (s *Sending) TakesBackLeft(created bool) bool { return created && !s.MaybeSent && !s.Enqueued }

// sendableUntil returns the last moment for a send to start, for a client of usual time limits; zero: no bound. marked: a first send was made, or may have been.
// (Invariant 8.)
func (s *Sending) sendableUntil(marked bool) time.Time {
	if marked {
		return s.FirstSent.Add(s.Window - UsualMargin(s.Window))
	}
	return s.SendBefore
}

// LastSend returns the time after which nobody sends an operation begun at created: the window of its key after its first send, made or latest possible. (Invariant 8.)
func (s *Sending) LastSend(created time.Time) time.Time {
	switch {
	case s.MaybeSent:
		created = s.FirstSent
	case !s.SendBefore.IsZero():
		created = s.SendBefore
	}
	return created.Add(s.Window)
}

// SentBy returns the end of the latest send of a held operation: a lookup before it proves nothing. usual is for a record without SendUntil. (Invariants 31 and 62.)
func (s *Sending) SentBy(now, usual time.Time) time.Time {
	by := s.SendUntil
	if by.IsZero() && s.MaybeSent {
		by = usual
	}
	if by.Before(now) {
		return now
	}
	return by
}

// DesertedUntil returns the time until which a send may be under way by a process that lost its lease, and may be frozen; zero: none. over: the lease of the last owner
// has ended, and nobody has had the operation since. Another process's later attempts do not end that send. (Invariant 31.)
func (s *Sending) DesertedUntil(over bool) time.Time {
	if over { // never before s.Deserted: it never moves back
		return s.SendUntil
	}
	return s.Deserted
}

// GivesAgain reports whether, after a crash, the same key gets the answer of a confirmed operation again, and long enough. stored: the server keeps it. Near the end of
// the key's window it is false, and after a clock that went back. (Invariants 13, 14 and 30.)
func (s *Sending) GivesAgain(stored bool, now time.Time) bool {
	age := now.Sub(s.FirstSent)
	return stored && age >= 0 && age <= s.Window-s.Window/10
}

// setBackMost is how far the clock may be behind the latest send of an operation: the clocks of two servers of a journal differ by less, before and after a failover.
const setBackMost = 10 * time.Minute

// wasSetBack reports whether the clock is far behind the begin of the operation's latest send: it was set back, and does not tell how old the key is. (Invariant 51.)
func (s *Sending) wasSetBack(now time.Time) bool {
	return now.Round(0).Before(s.Tried.Add(-min(setBackMost, s.Window/10)))
}

// UsualPauses is the meaning of the zero persist.Pauses. It never changes: records of earlier versions mean these pauses.
var UsualPauses = persist.Pauses{Attempts: 6, First: 30 * time.Second, Most: 15 * time.Minute}

// DueAgain returns the next due time of an operation that a client gives up unsent; again is the wanted one. It is not before NextAttempt, and not after the end of the
// time for sends: due then, the operation is held, and a person is told. An end already past does not count: the client could not hold it. (Invariant 28.)
func (s *Sending) DueAgain(again, now time.Time) time.Time {
	if until := s.sendableUntil(s.MaybeSent); until.After(now) && again.After(until) {
		again = until
	}
	if again.After(s.NextAttempt) {
		return again
	}
	return s.NextAttempt
}

// pause returns the wait after failed attempts before the next pass (Resume or Run). attempts are those not yet in the record; Pauses.Attempts of them count as one
// pass. The wait grows with the passes, up to half of the time left for sends (until): so the last hours are used. (Invariants 16 and 28.)
func (s *Sending) pause(attempts int, now, until time.Time) time.Duration {
	drives := (s.Attempts + attempts + s.Pauses.Attempts - 1) / s.Pauses.Attempts
	pause := pauses.After(max(drives, 1), s.Pauses.First, s.Pauses.Most)
	if left := until.Sub(now); left > 0 {
		pause = max(min(pause, left/2), min(s.Pauses.First, leastPause))
	}
	return pause
}

// leastPause bounds a pause at the end of the time for sends from below, unless the operation's own first pause is shorter.
const leastPause = 500 * time.Millisecond
