package run

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// replies are the answers and errors that a run has got so far. An answer may keep its connection until it is
// drained or handed on: the one in last, and while an attempt is judged, that in own.
type replies struct {
	task *task

	answers int             // so far; the drive names each by its number, from 1
	own     heard           // the latest attempt's own, or the lookup's before one
	last    heard           // the counting answer, and the latest error
	flawed  *persist.Answer // the latest 2xx with a classify.Flaw, as far as it was kept; nil if there was none
	failed  error           // of the latest failed step
	gaveUp  error           // the reason for no further attempt, as in stopCause; errLimited if the limiter takes long
}

// heard is the result of a request of this run. id names its answer for the drive; zero: there is no answer.
// The holder of a heard drains it, or hands it on: an answer keeps its connection until then.
type heard struct {
	wire.Result
	id int // numbers the answers of a run, for the drive
}

// hear gives the answer of a request a number, by which package operation names it when it decides. Answers of lookups get numbers, too:
// one may become the operation's. The caller drains the result, or hands it on.
func (r *replies) hear(sent wire.Result) heard {
	if sent.Answer == nil {
		return heard{Result: sent}
	}
	r.answers++
	return heard{sent, r.answers}
}

// sent returns a result in the form for the drive, which decides about the run. It has the number of all sends since the last result, so each result
// must go to the drive once. It also notes whether the origin takes connections. The wait that the server asks for (Hint) is read by the profile, so
// readBy comes before.
func (r *replies) sent(h heard) operation.Sent {
	t := r.task
	// All sends since the last result, those of followed redirects as well.
	s := operation.Sent{Sends: t.moreSends, Unsent: h.Unsent, TooOld: errors.Is(h.Err, errMaxAge), Down: r.noteOrigin(h.Result)}
	if h.Answer != nil {
		s.Answer = operation.Answer{ID: h.id, Status: h.Answer.Head.StatusCode}
		s.Hint = classify.Wait(t.prof.RetryAfter, seen(h.Answer), t.engine.now())
	}
	t.moreSends = 0
	return s
}

// settle keeps the answer that the drive has chosen in r.last, and drains the others, so that their connections are free for the next attempt. latest
// is the result of the latest request, which then belongs to r. r.last.Err is the latest error in every case. It is called once the drive has had the
// result.
func (r *replies) settle(latest heard) {
	switch r.task.drive.Answer().ID {
	// The drive has no answer: the error alone stays.
	case 0:
		latest.Drain()
		r.last.Drain()
		r.last = heard{Result: wire.Result{Err: latest.Err}}
	case r.last.id:
		latest.Drain()
		r.last.Err = latest.Err
	default:
		r.last.Drain()
		r.last = latest
	}
}

// judged keeps the answer of an attempt that the drive has chosen, unless the drive asks for more. latest is the result of the latest request: of the send
// (own), or of a lookup after it; the other one is drained. While the drive asks for a lookup, the send's answer stays open: the lookup reads its text.
func (r *replies) judged(latest heard) {
	t := r.task
	switch t.drive.Step() {
	case operation.LookUp, operation.AskDuplicate:
		return
	}
	if t.drive.Unread() {
		// The answer stays as it is, for a client that can read it.
		r.own.Err = otherFactsError(&t.rec, r.own.Answer.Head.StatusCode)
	}
	if latest.id != r.own.id {
		if latest.id != 0 && t.drive.Answer().ID == latest.id {
			r.own.Drain()
			r.settle(latest)
			return
		}
		latest.Drain()
	}
	r.settle(r.own)
}

// noteOrigin notes whether the origin takes connections, as shown by a request. If it does not, down is the earliest time of a new try; zero else, and after a
// failure of this client's own. If the origin takes connections again, Run is woken, and a pause since operations there are left alone (passesBy) ends. A call
// that was given up says nothing of the origin.
func (r *replies) noteOrigin(sent wire.Result) (down time.Time) {
	t := r.task
	switch policy := &t.cfg.Retry; {
	// Something has left for the origin, so that it takes connections.
	case !sent.Unsent:
		t.engine.passesBy.Reached(t.rec.Origin)
		// It did not, until now: operations wait for it.
		if t.engine.origins.Reached(t.rec.Origin) {
			t.engine.wake()
		}
	case !sent.Fatal && t.call.Context().Err() == nil:
		return t.engine.origins.Failed(t.rec.Origin, t.engine.now(), policy.MinDelay, policy.MaxPause)
	}
	return time.Time{}
}

// stopped returns the reason for which the drive has stopped the run; nil if it was not stopped. It may be asked once there is no further attempt. It
// is the cause in the call's error. gaveUp tells why the call made no further attempt; failed is the error of the latest failed step.
func (r *replies) stopped() error {
	switch stop := r.task.drive.Stop(); stop {
	case operation.GivenUp:
		return r.gaveUp
	case operation.Unsure, operation.JournalFailed, operation.TakenKey, operation.OldHappened:
		return r.failed
	default:
		return stopErrors[stop]
	}
}

// note keeps why a step of the run failed; nil changes nothing. A later success does not take it back: if that failure stops the run, it
// becomes the cause of the call's error.
func (r *replies) note(err error) {
	if err != nil {
		r.failed = err
	}
}

// answered returns the last answer, as callers get it. There must be one. The unread rest of a large body goes
// with it, for one of the callers.
func (r *replies) answered() *answer {
	t := r.task
	proof, source := t.drive.Proof(), SourceServer
	if proof.Replayed {
		source = SourceReplay
	}
	a := r.last.Answer
	how := t.resultWith(t.known(), source)
	how.AlreadyDone = proof.AlreadyDone
	how.Effect = t.drive.Standing().Effect()
	answered := &answer{
		head: a.Head, status: a.Head.StatusCode, header: a.Head.Header, body: a.Body, partial: !a.Whole, rest: a.Rest, result: how,
	}
	if a.Hopped {
		answered.from = a.From
	}
	return answered
}

// answerForRecord returns the last answer as it is recorded and as errors hold it, with the time now; nil if
// there is none. It shares header lines and body with the answer, so the caller copies them before it changes
// any. Config.DropAnswer and KeepHeader are heeded: an error has no more of an answer than the journal.
func (r *replies) answerForRecord(now time.Time) *persist.Answer {
	t := r.task
	a := r.last.Answer
	if a == nil {
		return nil
	}
	proof := t.drive.Proof()
	recorded := &persist.Answer{
		Status: a.Head.StatusCode, Header: a.Head.Header, Body: a.Body, BodyDropped: !a.Whole,
		Dropped: a.Dropped, Replayed: proof.Replayed, AlreadyDone: proof.AlreadyDone, Stored: t.drive.Stored(), At: now,
	}
	// It may ask Config.KeepHeader.
	t.keepAnswer(recorded)
	return recorded
}

// holdNote returns the note for the person who will settle the held operation: who holds it, and why. It has no URL and no body in it: the errors
// were sanitized before. It is cut to the journal's bound, and is valid UTF-8.
func (r *replies) holdNote() string {
	cause := cmp.Or(r.last.Err, r.stopped())
	switch {
	case cause == nil && r.last.Answer != nil:
		cause = fmt.Errorf("answered %d", r.last.Answer.Head.StatusCode)
	case cause == nil:
		proof := r.task.drive.Proof()
		cause = cmp.Or(troubles[proof.Trouble()], errors.New("nothing more may be sent"))
	}
	// The first digits tell two processes apart in a log.
	note := fmt.Sprintf("held by the client %.8s: %v", r.task.engine.owner, cause)
	return strings.ToValidUTF8(note[:min(len(note), persist.NoteBytesMax)], "")
}
