package run

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// This file holds the loop over the attempts of one run: go-retryablehttp makes them, and its hooks ask the
// drive.

// attempts are the attempts of a run, one after the other, with the waits between them. They do the steps of
// the drive by the other parts.
type attempts struct {
	task     *task     // the operation, and its drive
	replies  *replies  // what the server said
	report   *report   // tells events
	permit   *permit   // the turn to send, and the limiter's word
	checks   *checks   // may it leave now
	requests *requests // make and send a request
	tokens   *tokens   // the server's token, if the API has one
	inquiry  inquiry   // lookups instead of a send

	started   time.Time                   // of the call's first drive, by this process's own clock
	schedule  *backoff.ExponentialBackOff // nil before the first wait
	firstSeen bool                        // inLoop was called
	endWait   func() bool                 // removes the AfterFunc of a wait; nil: there is no wait
}

// loop makes attempts until the drive needs no further one. The first is made directly: nearly every operation
// ends with it, and going through the loop for it would double the cost of the client (docs/performance.md).
// The other attempts are made by go-retryablehttp's loop. Its hooks are below, in the order of their calls:
// inLoop is its transport, waits its CheckRetry, backoff its Backoff. The loop gets an empty response. So it
// cannot follow a redirect, drain or close an answer, replace an error, or reach the caller's connections. A
// wait ends when the call is given up.
func (a *attempts) loop() {
	t := a.task
	if a.started.IsZero() {
		a.started = time.Now()
	}
	if t.target == nil {
		t.target, _ = request.URL(&t.rec)
	}
	a.requests.sender = newSender(t.cfg, a.requests)
	a.requests.sender.Bodyless = len(t.rec.Body) == 0
	t.drive = operation.NewDrive(t.op(), t.cfg.drives, t.givenNow())
	a.attempt()
	if t.drive.Step() != operation.Draw {
		return
	}
	loop := retryablehttp.Client{
		HTTPClient: &http.Client{Transport: transportFunc(a.inLoop)}, CheckRetry: a.waits, Backoff: a.backoff,
		RetryMax: math.MaxInt32, ErrorHandler: retryablehttp.PassthroughErrorHandler, // the drive has the bounds
	}
	_, err := loop.Do(&retryablehttp.Request{Request: t.engine.loopRequest.WithContext(t.call.Context())})
	t.took.leave()                                      // of a wait that was cut short
	if err != nil && t.drive.Step() == operation.Wait { // the wait was cut short
		a.replies.gaveUp = stopCause(t.call)
		t.drive.Waited(false)
	}
}

// newLoopRequest returns a dummy request for go-retryablehttp; it is never sent.
func newLoopRequest() *http.Request {
	return &http.Request{Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: "loop"}, Header: http.Header{}}
}

// transportFunc lets a function be an http.RoundTripper.
type transportFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper. It calls f.
func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// inLoop is the transport of go-retryablehttp's loop. Its first call makes no attempt, since loop has made one already; each later call ends a wait
// and makes one. The result of the attempt goes to replies. The loop gets an empty answer and never an error.
func (a *attempts) inLoop(loop *http.Request) (*http.Response, error) {
	if a.firstSeen {
		a.task.took.leave()
		a.stopWaiting()
		if !a.limited() {
			a.task.drive.Waited(true)
		}
		a.attempt()
	}
	a.firstSeen = true
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: loop}, nil
}

// waits is the loop's CheckRetry: it reports whether the drive waits for another attempt. Before a wait it
// frees an answer of no further use, tells of the wait, and lets a draining client cut the wait; stopWaiting
// must follow. Its arguments are not used, and err is always nil.
func (a *attempts) waits(context.Context, *http.Response, error) (again bool, err error) {
	t := a.task
	if t.drive.Step() == operation.Draw {
		a.draw()
	}
	if t.drive.Step() != operation.Wait {
		return false, nil
	}
	if !t.drive.KeepsAnswer() {
		a.replies.last.Drain()
	}
	if a.report.heard() {
		e := a.report.event(EventWaiting)
		e.Wait = t.drive.Wait()
		a.report.tell(e)
	}
	draining := t.call.Draining() // it ends this wait, but not an attempt
	a.endWait = context.AfterFunc(draining, func() { t.call.GiveUp(sanitize.Cause(draining)) })
	t.took.enter(&t.took.spent.Waiting)
	return true, nil
}

// limited waits for the rate limiter of another send. If the wait takes long, it ends these attempts, and returns true: the operation is then
// left to other processes, without this client's lease. After false the run goes on, and an error of the limiter is met again by the attempt.
func (a *attempts) limited() bool {
	if !a.permit.waitsLong() {
		return false
	}
	a.replies.gaveUp = errLimited
	a.task.drive.Limited()
	return true
}

// draw chooses the wait before the next attempt, as the step Draw. The drive, which decides, gets the next wait of the schedule, the time spent, the
// callers' deadline, and whether the call was given up. Then it waits, or ends. The schedule advances at each step, also where the drive takes
// another wait: so the bound grows with the attempts.
func (a *attempts) draw() {
	t := a.task
	if a.schedule == nil {
		a.schedule = newSchedule(&t.cfg.Retry)
	}
	now := t.engine.now()
	a.replies.gaveUp = stopCause(t.call)
	t.drive.Drawn(operation.Drawn{
		Scheduled: a.schedule.NextBackOff(), Elapsed: time.Since(a.started), Deadline: deadlineBy(now, t.call.Deadline()), GivenUp: a.replies.gaveUp != nil,
	}, now)
}

// stopWaiting ends the part of an attempt in which the end of the client gives up the call (see waits). From then on the attempt is on the wire, and
// has its time to end. A second call does nothing.
func (a *attempts) stopWaiting() {
	if a.endWait != nil {
		a.endWait()
		a.endWait = nil
	}
}

// backoff returns the wait that the drive has chosen, in the form that go-retryablehttp's loop asks for. The loop's own bounds and attempt numbers
// are not used.
func (a *attempts) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
	return a.task.drive.Wait()
}

// stopCause returns the reason for making no further attempt: the end of the call's context, or the start of a Close that drains the call. It returns
// nil if there is none. An attempt on the wire goes on during a drain.
func stopCause(call callers) error {
	if cause := sanitize.Cause(call.Context()); cause != nil {
		return cause
	}
	return sanitize.Cause(call.Draining())
}
