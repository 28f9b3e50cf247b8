package run

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
)

// This file holds the steps of one attempt.

// attempt does the steps that the drive (operation.Drive, which decides about the run) asks for, until it waits or ends. With Policy.AskFirst it
// first asks the API for an earlier effect. If the rate limiter takes long before a send, the attempt is not made. The permission to send to the
// origin (turn) is free for other runs at the end. A send is reported once the drive has no more questions about its answer.
func (a *attempts) attempt() {
	defer a.permit.Dismiss()
	// tell is called once for each send, and only when nothing more can change the verdict on it.
	sent := false
	tell := func() {
		if sent {
			a.report.tellAnswered()
			a.report.logAttempt()
		}
		sent = false
	}
	for {
		// If that takes long, the drive ends the attempts, and the step below is the last write.
		if a.task.drive.WaitsToSend() {
			a.limited()
		}
		switch a.task.drive.Step() {
		case operation.AskFirst:
			a.inquiry.askFirst()
		case operation.CheckToken, operation.Check:
			a.check()
		case operation.FetchToken:
			a.tokens.fetchToken()
		case operation.KeepToken:
			a.tokens.keepToken()
		case operation.Send:
			sent = true
			a.sendOnce()
		case operation.LookUp:
			a.inquiry.lookUp()
		case operation.AskDuplicate:
			a.inquiry.askDuplicate()
		case operation.AskSource:
			tell() // before it: who hears of the answer may throw a credential away
			a.askSource()
		default:
			tell()
			return
		}
	}
}

// check does the steps Check and CheckToken before a send. It reads the clock; for Check it also checks the lease, and looks for another operation
// with the same key on the wire. A reason against the send goes to replies.failed; the drive, which decides about the run, then ends it without a
// send.
func (a *attempts) check() {
	t := a.task
	err := t.notice()
	if err == nil && t.drive.Step() == operation.Check {
		err = a.checks.checkLease(t.call.Values())
	}
	// One look after the other, and none after an error: the drive ends with the first reason.
	taken, stopped := false, false
	if err == nil && t.drive.Step() == operation.Check {
		taken, err = a.checks.keyTaken(t.call.Values())
	}
	if err == nil && t.drive.Step() == operation.Check {
		stopped, err = a.checks.oldStops(t.call.Values())
	}
	a.replies.failed = err
	// A lookup may be counted as an attempt below.
	before := t.drive.Attempts()
	switch {
	case taken:
		t.drive.KeyTaken()
	case stopped:
		t.drive.OldFound()
	default:
		t.drive.Checked(err == nil, t.engine.now())
	}
	switch t.drive.Step() {
	case operation.Send:
		a.report.tellStep(EventAttempt)
	case operation.FetchToken:
	default: // there is no send: what is known stands
		var lookup heard // without its answer
		if t.drive.Attempts() > before {
			lookup.Err = a.replies.own.Err
		}
		a.replies.settle(lookup)
	}
}

// sendNow makes one attempt: it sends, judges the answer, adds the attempt to the record in memory, and hands the result to the drive, which decides how the
// run goes on. own is the answer to this very send. The attempt is in the record before, so that each write after the decision has it.
func (a *attempts) sendNow() {
	t := a.task
	began := time.Now()
	// Of the attempt before: it says nothing of this one's credentials.
	a.requests.signed = nil
	sent := a.requests.send()
	a.requests.noteCredentials(&sent)
	// The answer is that of the last send alone: an earlier one may have taken effect.
	if sent.SentAgain {
		t.drive.LostBeneath()
	}
	// In doubt by the sends before this one.
	v := a.replies.classify(&sent, t.drive.InDoubt())
	t.remember(began, sent)
	a.replies.own = a.replies.hear(sent)
	result := a.replies.sent(a.replies.own)
	result.Source = a.requests.signed != nil // after a 401 or 407 it can be asked for other credentials
	if sent.Answer != nil {
		result.Error = classify.KeptError(t.prof, seen(sent.Answer))
	}
	t.drive.Sent(v, result)
	a.replies.judged(a.replies.own)
}

// sendOnce sends the operation's request once, as the step Send of the run. If Config.Instrument is set, it hears of the begin and the end of the attempt, also
// if code of the user crashes in between. Instrument may change the context of the call (t.call) for the attempt; at the end it is as before.
func (a *attempts) sendOnce() {
	t := a.task
	if t.cfg.Instrument == nil {
		a.sendNow()
		return
	}
	call, sent := t.call, false
	// For AttemptFromContext in the functions of the Instrument.
	ctx := &attemptContext{call.Context(), a.requests.attemptNow(), true}
	end := a.report.span.instrument(ctx, true, a.report.event(EventAttempt))
	defer func() {
		t.call = call
		if end == nil {
			return
		}
		e := a.report.eventAnswered()
		if !sent {
			e = a.report.event(EventAnswered)
			e.Err = errCrashed
		}
		a.report.span.calmEnd(end, e)
	}()
	a.sendNow()
	sent = true
}
