package run

import (
	"github.com/oncehttp/oncehttp/internal/lanes"
	"github.com/oncehttp/oncehttp/internal/operation"
)

// run is one run of the attempt loop over one record: one Do, or one record in one Resume. The Drive decides,
// and the run does its steps. One goroutine uses it.
//
// Each part has the fields that it alone writes, but for the task, whose record and drive all of them move on.
// A part knows the task and those of the parts before it that newRun gives it. So nothing goes back up, and the
// run alone joins what is left.
type run struct {
	task     task     // the operation, its call and the drive
	replies  replies  // the answers and errors so far
	report   report   // tells of the steps
	permit   permit   // the leave to send
	checks   checks   // the looks before a send
	requests requests // the requests on the wire
	tokens   tokens   // the server's token, if the API hands out its keys
	attempts attempts // the steps until the outcome
	ending   ending   // the record and the result of the outcome
}

// newRun returns a run for a call of this name. The run has no record, profile or credentials yet; the caller
// sets them before adopt or execute. took becomes the run's own stopwatch.
func newRun(e *engine, call callers, name string, took *stopwatch) *run {
	r := &run{
		task: task{engine: e, cfg: e.cfg, journal: took.timed(e.journal), took: took, call: call, name: name},
	}
	t := &r.task
	r.replies = replies{task: t}
	r.report = report{task: t, replies: &r.replies, span: span{task: t}}
	r.permit = permit{task: t, turns: lanes.Free{}}
	r.checks = checks{task: t, report: &r.report}
	r.requests = requests{permit: &r.permit, task: t, checks: &r.checks}
	r.tokens = tokens{task: t, replies: &r.replies, permit: &r.permit, requests: &r.requests}
	r.attempts = attempts{
		task: t, replies: &r.replies, report: &r.report, permit: &r.permit, checks: &r.checks, requests: &r.requests, tokens: &r.tokens,
		inquiry: inquiry{task: t, replies: &r.replies, requests: &r.requests},
	}
	r.ending = ending{task: t, replies: &r.replies}
	return r
}

// existing returns the parts of the run that handle a record already in the journal. The caller sets that record first, or calls keptAnswer.
func (r *run) existing() existing {
	return existing{task: &r.task, replies: &r.replies, report: &r.report, permit: &r.permit, ending: &r.ending}
}

// execute makes attempts until the drive allows no further one, or a limit ends the run, and records the
// outcome. The record must say before that it may be sent (begin or adopt), and on a shared journal its lease
// must be this client's. execute renews the lease until the last write, which gives it up; if that write fails,
// the lease ends by itself. A result with left set has no outcome: the operation was given back, and its call
// waits for the limiter.
func (r *run) execute() *result {
	t := &r.task
	t.engine.leases.Begin(&t.rec)
	defer t.engine.leases.End(t.rec.ID)
	r.report.begins()
	// A function of the user may panic below, or end the goroutine. Then over stays false, and leave tells so.
	over := false
	defer func() { r.leave(over) }()
	if res := r.leaveLimited(); res != nil {
		over = true
		r.report.tellLeft(res)
		return res
	}
	r.attempts.loop()
	r.attempts.stopWaiting() // the loop may have ended during a wait
	_ = t.notice()           // if the journal cannot be asked, nothing can be recorded either
	res := r.leaveBetween()
	if res == nil {
		res = r.end()
	}
	// A wait for the limiter that is still under way belongs to whoever goes on with the operation; else it
	// must end here.
	switch {
	case r.permit.turn == nil:
	case r.replies.gaveUp == errLimited && (t.given.Pass || res.left != nil): // it goes on after the turn
		r.permit.turn.leaveToken(&t.rec, r.tokens.token)
	default: // the run is over, and takes no turn
		r.permit.turn.stop(errLimited)
	}
	over = true
	return res
}

// end records the outcome and returns the result. If the journal may write late, the waiting callers have a
// confirmed answer before its record. If the write of a confirmed answer fails, the engine notes it, so that
// Flush can tell of it.
func (r *run) end() *result {
	t := &r.task
	if r.answersFirst() {
		return r.answerFirst()
	}
	err := r.ending.conclude(t.journal.Finish)
	res := r.ending.result()
	if t.drive.Writing() == operation.EndConfirmed && res.err == nil {
		t.engine.doubts.answered(&t.rec, err)
	}
	return r.finished(res)
}

// finished tells Config.Observe and the log of the end of the run, and returns res. It is called once in a run, before the callers have res. If the
// run ended in an error while its client closes, it sets res.notShared: joined callers of other clients start again. While Config.Observe works,
// another call may begin a key freed by this run; then stillFree changes res.
func (r *run) finished(res *result) *result {
	t := &r.task
	defer r.ending.stillFree(res)
	r.report.tellHeld()
	res.notShared = res.err != nil && t.call.Draining().Err() != nil
	if r.report.heard() || r.report.span.end != nil {
		e := r.report.event(EventFinished)
		e.Outcome, e.Err, e.Rule, e.Hold = t.known(), res.err, ruleOf(t), t.holds()
		e.answeredBy(r.replies.last.Answer, t.drive.Proof().Replayed)
		r.report.span.ends(e)
		r.report.tell(e)
	}
	r.report.logEnd(res)
	return res
}

// leave is the last act of a run. over is false if a function of the Config panicked, or ended the goroutine: then the call's own handling of crashes makes the
// error. Unless the operation is resolved (its end is written, and told to a caller), callers without a key count it as unfinished from here on: they may not
// begin another one of the same request.
func (r *run) leave(over bool) {
	t := &r.task
	if !over {
		e := r.report.event(EventLeft)
		e.Err = errCrashed
		r.report.span.ends(e)
		r.replies.last.Drain()
		if r.permit.turn != nil {
			r.permit.turn.stop(errCrashed)
		}
	}
	if !r.ending.resolved {
		t.call.SetInDoubt(true)
		t.engine.alike.Doubted(&t.rec)
	}
}
