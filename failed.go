package oncehttp

import (
	"net/http"
	"slices"

	"github.com/oncehttp/oncehttp/internal/operation"
)

// This file holds the result of a run that ends without an answer.

// fail makes a result with an error, and with the answer too if a caller that sees plain HTTP may have it.
func (d ending) fail(standing operation.Standing, why ...error) *result {
	failed := d.failed(standing, why...)
	res := &result{err: failed}
	if plain, _ := d.call.PlainHTTP(); plain && d.last.Answer != nil && (standing == operation.None || standing == operation.Ended || d.mayShow()) {
		res.answer = d.answered()
		res.answer.result.Effect = failed.Effect()
	} else {
		d.last.Drain()
	}
	return res
}

// mayShow reports whether a caller that sees plain HTTP may get the last answer as its response although the outcome is
// unknown. 409 and 5xx claim nothing. A 2xx claims more than is known. Any other answer says or suggests that nothing
// happened, and must not be the only one that such a caller sees where something may have: after an earlier attempt in
// doubt, or where the record could not be taken back, maybe because another process went on with it.
func (d ending) mayShow() bool {
	status := d.last.Answer.Head.StatusCode
	if status == http.StatusConflict || status >= 500 {
		return true
	}
	return status >= 300 && !d.doubtBefore && d.verdict.outcome == OutcomeUnknown
}

// failed makes the error of this run, of an operation that stands so after it.
func (d ending) failed(standing operation.Standing, why ...error) *Error {
	about := subject{
		key: Key(d.rec.Key), state: d.rec.State, standing: standing, known: operation.Same,
		sent: d.history.InDoubt() || d.rec.Sends+d.sends > 0,
	}
	e := newError(d.name, about, d.stop, why...)
	if e.verdict != operation.Final { // else the record says more than the run
		e.Outcome = d.known()
	}
	e.Attempts, e.Sends, e.Last = d.attempts, d.sends, d.last.Err
	e.Answer = d.answerForRecord(d.now().Round(0))
	if e.Answer != nil {
		e.Answer.Header, e.Answer.Body = e.Answer.Header.Clone(), slices.Clone(e.Answer.Body) // a copy: the response may share this body
	}
	switch {
	case d.verdict.hold != "":
	case standing == operation.Open, standing == operation.Unclear:
		e.NextAttempt = d.rec.NextAttempt
	case d.last.Answer != nil: // no record is left; d.next says when to try again
		e.NextAttempt = d.next
	}
	return e
}
