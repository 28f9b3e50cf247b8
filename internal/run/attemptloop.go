package run

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
)

// This file holds the loop over the attempts of one run: go-retryablehttp makes them, and its hooks ask the drive.

// loop makes attempts until the drive needs no further one. The first is made directly:
// nearly every operation ends with it, and going through the loop for it would double the cost of the client
// (docs/performance.md). The other attempts are made by go-retryablehttp's loop. Its hooks are below, in the order of their calls:
// inLoop is its transport, waits its CheckRetry, backoff its Backoff. The loop gets an empty response. So it cannot
// follow a redirect, drain or close an answer, replace an error, or reach the caller's connections. A wait ends when the
// call is given up.
func (r *run) loop() {
	if r.started.IsZero() {
		r.started = time.Now()
	}
	if r.target == nil {
		r.target, _ = request.URL(&r.rec)
	}
	r.sender = newSender(r.cfg, recordedRequest{r})
	r.sender.Bodyless = len(r.rec.Body) == 0
	r.drive = operation.NewDrive(r.op(), r.cfg.drives, r.givenNow())
	r.attempt()
	if r.drive.Step() != operation.Draw {
		return
	}
	loop := retryablehttp.Client{
		HTTPClient: &http.Client{Transport: transportFunc(r.inLoop)}, CheckRetry: r.waits, Backoff: r.backoff,
		RetryMax: math.MaxInt32, ErrorHandler: retryablehttp.PassthroughErrorHandler, // the drive has the bounds
	}
	_, err := loop.Do(&retryablehttp.Request{Request: r.loopRequest.WithContext(r.call.Context())})
	r.took.leave()                                      // of a wait that was cut short
	if err != nil && r.drive.Step() == operation.Wait { // the wait was cut short
		r.gaveUp = r.stopCause()
		r.drive.Waited(false)
	}
}

// newLoopRequest returns a dummy request for go-retryablehttp; it is never sent.
func newLoopRequest() *http.Request {
	return &http.Request{Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: "loop"}, Header: http.Header{}}
}

// transportFunc lets a function be an http.RoundTripper.
type transportFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// inLoop is the loop's transport. Its first call makes no attempt, since loop has made one already; each later
// call ends a wait and makes one. The result of the attempt is in r. The loop gets an empty answer and never an
// error.
func (r *run) inLoop(loop *http.Request) (*http.Response, error) {
	if r.firstSeen {
		r.took.leave()
		r.stopWaiting()
		if r.waitsLong() {
			r.drive.Limited()
		} else {
			r.drive.Waited(true)
		}
		r.attempt()
	}
	r.firstSeen = true
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: loop}, nil
}

// waits is the loop's CheckRetry: it reports whether the drive waits for another attempt. Before a wait it frees
// an answer of no further use, tells of the wait, and lets a draining client cut the wait; stopWaiting must
// follow. Its arguments are not used, and err is always nil.
func (r *run) waits(context.Context, *http.Response, error) (again bool, err error) {
	if r.drive.Step() == operation.Draw {
		r.draw()
	}
	if r.drive.Step() != operation.Wait {
		return false, nil
	}
	if !r.drive.KeepsAnswer() {
		r.last.Drain()
	}
	if r.heard() {
		e := r.event(EventWaiting)
		e.Wait = r.drive.Wait()
		r.tell(e)
	}
	draining := r.call.Draining() // it ends this wait, but not an attempt
	r.endWait = context.AfterFunc(draining, func() { r.call.GiveUp(context.Cause(draining)) })
	r.took.enter(&r.took.spent.Waiting)
	return true, nil
}

// draw does the step Draw: the drive gets the next wait of the schedule, the time spent, the callers' deadline and
// whether the call was given up. The drive then waits, or ends. draw sets gaveUp.
func (r *run) draw() {
	if r.schedule == nil {
		r.schedule = newSchedule(&r.cfg.Retry)
	}
	now := r.now()
	r.gaveUp = r.stopCause()
	r.drive.Drawn(operation.Drawn{
		Scheduled: r.schedule.NextBackOff(), Elapsed: time.Since(r.started), Deadline: deadlineBy(now, r.call.Deadline()), GivenUp: r.gaveUp != nil,
	}, now)
}

// stopWaiting removes the AfterFunc set by waits, so that draining no longer gives up the call. It does nothing
// after a second call.
func (r *run) stopWaiting() {
	if r.endWait != nil {
		r.endWait()
		r.endWait = nil
	}
}

// backoff hands the loop the wait chosen by the drive.
func (r *run) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
	return r.drive.Wait()
}

// stopCause returns the reason for making no further attempt: the call was given up, or it drains. It returns nil
// if neither is true. An attempt on the wire goes on while a call only drains.
func (r *run) stopCause() error {
	if cause := context.Cause(r.call.Context()); cause != nil {
		return cause
	}
	return context.Cause(r.call.Draining())
}
