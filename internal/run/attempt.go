package run

import (
	"context"
	"errors"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the steps of one attempt.

// heard is the result of a request of this run. id names its answer for the drive; zero: there is no answer. The
// holder of a heard drains it, or hands it on: an answer keeps its connection until then.
type heard struct {
	wire.Result
	id int
}

// hear gives the answer of a request its number, if there is an answer. The caller drains the result, or hands it
// on.
func (r *run) hear(sent wire.Result) heard {
	if sent.Answer == nil {
		return heard{Result: sent}
	}
	r.answers++
	return heard{sent, r.answers}
}

// sent returns a result as the drive takes it, with all sends since the last result, and resets their count. So
// each result of the run must go to the drive once. It also notes whether the origin takes connections.
func (r *run) sent(h heard) operation.Sent {
	s := operation.Sent{Sends: r.moreSends, Unsent: h.Unsent, TooOld: errors.Is(h.Err, errMaxAge), Down: r.noteOrigin(h.Result)}
	if h.Answer != nil {
		s.Answer = operation.Answer{ID: h.id, Status: h.Answer.Head.StatusCode}
		s.Hint = classify.Wait(r.prof.RetryAfter, seen(h.Answer), r.now())
	}
	r.moreSends = 0
	return s
}

// settle keeps the answer chosen by the drive in r.last, and drains the others. latest is the result of the latest
// request; after settle it is not the caller's any more. r.last.Err is the latest error in every case.
func (r *run) settle(latest heard) {
	switch r.drive.Answer().ID {
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

// attempt does the drive's steps until it waits, or ends. With Policy.AskFirst it first asks if the operation took
// effect already. A turn to send is given back at the end. If the limiter takes long before a send, the attempt is
// not made.
func (r *run) attempt() {
	defer r.Dismiss()
	sent := false
	tell := func() {
		if sent {
			r.tellAnswered()
			r.logAttempt()
		}
		sent = false
	}
	for {
		if r.drive.WaitsToSend() && r.waitsLong() {
			r.drive.Limited()
		}
		switch r.drive.Step() {
		case operation.AskFirst:
			r.askFirst()
		case operation.CheckToken, operation.Check:
			r.check()
		case operation.FetchToken:
			r.fetchToken()
		case operation.KeepToken:
			r.keepToken()
		case operation.Send:
			sent = true
			r.sendOnce()
		case operation.LookUp:
			r.lookUp()
		case operation.AskDuplicate:
			r.askDuplicate()
		case operation.AskSource:
			tell() // before it: who hears of the answer may throw a credential away
			r.askSource()
		default:
			tell()
			return
		}
	}
}

// check does the steps Check and CheckToken: it reads the clock, and for Check also checks the lease and looks for
// another operation with the key on the wire. The reason against a send is in r.failed; the drive then ends
// without one.
func (r *run) check() {
	err := r.clock.Notice(r.call.Values(), r.host)
	if err == nil && r.drive.Step() == operation.Check {
		err = r.checkLease(r.call.Values())
	}
	taken, stopped := false, false
	if err == nil && r.drive.Step() == operation.Check {
		taken, err = r.keyTaken(r.call.Values())
	}
	if err == nil && r.drive.Step() == operation.Check {
		stopped, err = r.oldStops(r.call.Values())
	}
	r.failed = err
	before := r.drive.Attempts()
	switch {
	case taken:
		r.drive.KeyTaken()
	case stopped:
		r.drive.OldFound()
	default:
		r.drive.Checked(err == nil, r.now())
	}
	switch r.drive.Step() {
	case operation.Send:
		r.tellStep(EventAttempt)
	case operation.FetchToken:
	default:
		var lookup heard // without its answer
		if r.drive.Attempts() > before {
			lookup.Err = r.own.Err
		}
		r.settle(lookup)
	}
}

// sendNow makes the attempt of sendOnce: it sends, judges the answer, adds the attempt to the record in memory,
// and tells the drive.
func (r *run) sendNow() {
	began := time.Now()
	r.signed = nil
	sent := r.send()
	if sent.SentAgain {
		r.drive.LostBeneath()
	}
	v := r.classify(&sent, r.drive.InDoubt())
	r.remember(began, sent)
	r.own = r.hear(sent)
	result := r.sent(r.own)
	result.Source = r.signed != nil
	if sent.Answer != nil {
		result.Error = classify.KeptError(r.prof, seen(sent.Answer))
	}
	r.drive.Sent(v, result)
	r.judged(r.own)
}

// judged settles an attempt, unless the drive asks for more. latest is the result of the latest request: r.own, or
// that of a lookup after it. The drive has chosen between both; the other is drained.
func (r *run) judged(latest heard) {
	switch r.drive.Step() {
	case operation.LookUp, operation.AskDuplicate:
		return
	}
	if r.drive.Unread() {
		r.own.Err = r.otherFactsError(r.own.Answer.Head.StatusCode)
	}
	if latest.id != r.own.id {
		if latest.id != 0 && r.drive.Answer().ID == latest.id {
			r.own.Drain()
			r.settle(latest)
			return
		}
		latest.Drain()
	}
	r.settle(r.own)
}

// tellAnswered tells Config.Observe of the result of a send.
func (r *run) tellAnswered() {
	if r.heard() {
		r.tell(r.eventAnswered())
	}
}

// eventAnswered returns the event of the result of a send.
func (r *run) eventAnswered() *Event {
	e := r.event(EventAnswered)
	e.Err, e.Outcome = r.own.Err, r.known()
	e.answeredBy(r.own.Answer, r.drive.Proof().Replayed)
	return e
}

// checkLease returns an error if this client may no longer send the record; the loss is told once. It renews a
// lease that has ended. A final record has no lease, so asking again for its answer needs none.
func (r *run) checkLease(ctx context.Context) error {
	if r.given.AskedAgain {
		return nil
	}
	err := r.leases.Check(ctx, r.rec.ID)
	r.tellLost(err)
	return err
}

// noteOrigin notes whether the origin takes connections, as shown by a request. If it does not, down is the
// earliest time of a new try; zero else, and after a failure of this client's own. If the origin takes connections
// again, Run is woken.
func (r *run) noteOrigin(sent wire.Result) (down time.Time) {
	switch policy := &r.cfg.Retry; {
	case !sent.Unsent:
		r.passesBy.Reached(r.rec.Origin)
		if r.origins.Reached(r.rec.Origin) {
			r.wake()
		}
	case !sent.Fatal && r.call.Context().Err() == nil:
		return r.origins.Failed(r.rec.Origin, r.now(), policy.MinDelay, policy.MaxPause)
	}
	return time.Time{}
}

// remember adds an attempt to the record's history in memory; the next write of the record stores it. began is by this
// process's own clock.
func (r *run) remember(began time.Time, sent wire.Result) {
	took := time.Since(began)
	attempt := persist.Attempt{At: r.now().Add(-took).Round(0), Took: took, Sent: !sent.Unsent}
	if sent.Answer != nil {
		attempt.Status = sent.Answer.Head.StatusCode
	}
	if sent.Err != nil {
		attempt.Error = oneLine(sent.Err)
	}
	r.rec.AddAttempt(attempt)
}
