package run

import (
	"slices"

	"github.com/oncehttp/oncehttp/internal/operation"
)

// This file holds the error of a run at its end without an answer.

// error makes the error of a drive from the report of its end.
func (d ending) error(report *operation.Report) *Error {
	about := subject{
		key: d.rec.Key, state: d.rec.State, standing: report.Standing, known: operation.Same,
		sent: d.drive.InDoubt() || d.rec.Sends+d.sends() > 0,
	}
	e := newError(d.name, about, d.stopped(), sentinels(report.Why)...)
	if e.Said.verdict != operation.Final { // else the record says more than the run
		e.Outcome = d.known()
	}
	op := operation.OpOf(&d.rec, 0)
	e.Said.goesOn = op.IsForCaller()
	e.Attempts, e.Sends, e.Last = d.drive.Spent().Attempts, d.given.Spent.Sends+d.sends(), d.last.Err
	e.Answer = d.answerForRecord(d.now().Round(0))
	if e.Answer != nil {
		e.Answer.Header, e.Answer.Body = e.Answer.Header.Clone(), slices.Clone(e.Answer.Body) // a copy: the response may share this body
	}
	if e.NextAttempt = report.Due; report.AsRecorded {
		e.NextAttempt = d.rec.NextAttempt
	}
	return e
}
