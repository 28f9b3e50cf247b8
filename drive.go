package oncehttp

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// drive is one run of the attempt loop over one record. It is used by one
// goroutine; Do and Resume share it, so that a recovered operation cannot behave
// differently from a fresh one.
type drive struct {
	c           *Client
	f           *flight
	rec         persist.Record
	prof        *profile.Profile
	credentials request.Credentials
	target      *url.URL // where it is sent to
	created     bool     // this very call began the record

	reask bool // a confirmed operation is asked again for an answer too large to keep

	waits    waits
	loop     retryablehttp.Request
	looping  bool // it has been shown the first attempt, which was made before it
	stub     http.Response
	schedule *backoff.ExponentialBackOff
	started  time.Time
	attempts int
	sends    int
	inFlight int
	wait     time.Duration

	history classify.History // what the attempts prove together
	sender  *wire.Sender
	last    wire.Result // the answer that counts, and the latest error
	reading reading
	hint    time.Duration // the wait that the latest answer asks for
	next    time.Time     // when it is worth going on after a stop
	stop    error         // why the loop stopped although it might have gone on
}

type driveKey struct{}

// newLoop is the loop of all drives. It holds no state of any: the drive comes
// with the request's context. Its transport makes the attempt, keeps what was
// heard in the drive, and shows the loop an empty answer, so that nothing above it
// can follow a redirect, drain or close an answer, replace an error, or reach the
// caller's connection pool.
func newLoop() *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &http.Client{Transport: loopTransport{}},
		RetryMax:   math.MaxInt32, // the real bounds are in decide
		CheckRetry: func(ctx context.Context, _ *http.Response, _ error) (bool, error) {
			return driveOf(ctx).decide(), nil
		},
		Backoff: func(_, _ time.Duration, _ int, stub *http.Response) time.Duration {
			return driveOf(stub.Request.Context()).wait
		},
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// newLoopRequest is what the loop believes that it sends.
func newLoopRequest() *http.Request {
	return &http.Request{Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: "loop"}, Header: http.Header{}}
}

type loopTransport struct{}

func (loopTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	d := driveOf(req.Context())
	if d.looping {
		d.attempt()
	}
	d.looping = true
	d.stub = http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: req}
	return &d.stub, nil
}

func driveOf(ctx context.Context) *drive { return ctx.Value(driveKey{}).(*drive) }

// waits is the context of the loop: it carries the drive to the loop's transport
// and ends the waits between attempts. Every drive has one and few ever wait, so
// it is put together only when a wait begins.
type waits struct {
	context.Context // the first caller's values, until there is a wait
	d               *drive
	end             func()
}

// Value hands the drive to the loop's transport.
func (w *waits) Value(key any) any {
	if key == (driveKey{}) {
		return w.d
	}
	return w.Context.Value(key)
}

// begin prepares for a wait, which ends when the flight is given up, and when
// draining begins.
func (w *waits) begin() {
	w.done()
	ctx, cancel, _ := w.d.f.stage()
	draining := w.d.f.draining
	stop := context.AfterFunc(draining, func() { cancel(context.Cause(draining)) })
	w.Context, w.end = ctx, func() { stop(); cancel(nil) }
}

func (w *waits) done() {
	if w.end != nil {
		w.end()
	}
}

// run makes attempts until one settles the matter or nothing more may be tried.
func (d *drive) run() {
	d.started = d.c.now()
	d.target = d.targetURL()
	d.attempt()
	if !d.reading.again { // as nearly always, and then there is nothing for a loop to do
		return
	}
	d.waits = waits{Context: d.f.values, d: d}
	d.loop.Request = d.c.loopRequest.WithContext(&d.waits)
	_, err := d.c.loop.Do(&d.loop)
	if err != nil && d.stop == nil { // the wait was cut short; the verdict stands
		d.stop = context.Cause(d.waits.Context)
	}
	d.waits.done()
}

// attempt is one turn of the loop: look at the window, send, read.
func (d *drive) attempt() {
	now := d.c.now()
	if !d.history.InDoubt() && tooOld(&d.rec, now) {
		d.stop = errMaxAge
		d.notMade(expired())
		return
	}
	switch d.c.cfg.window(d.rec.FirstSent, now, d.rec.Window) {
	case windowOver:
		d.notMade(expired())
		return
	case windowBefore:
		d.stop, d.next = errClockBack, d.rec.FirstSent
		d.notMade(reading{outcome: OutcomeUnknown})
		return
	}
	d.attempts++
	d.observe(d.f.values, EventAttempt, nil)
	h := d.send()
	d.judge(h)
	d.observe(d.f.values, EventAnswered, func(e *Event) {
		e.Err, e.Outcome = h.Err, d.reading.outcome
		if h.Answer != nil {
			e.Status = h.Answer.Head.StatusCode
		}
	})
}

func expired() reading {
	return reading{outcome: OutcomeExpired, hold: persist.HoldExpired, why: ErrKeyExpired}
}

var errMaxAge = errors.New("it was not sent within EnqueueMaxAge")

// tooOld: an enqueued operation whose first send has had its time.
func tooOld(rec *persist.Record, now time.Time) bool {
	return !rec.SendBefore.IsZero() && now.After(rec.SendBefore)
}

// seeOrigin notes whether the attempt showed that the origin takes connections.
func (d *drive) seeOrigin(h wire.Result) {
	origins := &d.f.table.origins
	switch policy := &d.c.cfg.Retry; {
	case !h.Unsent:
		if origins.Reached(d.rec.Origin) {
			d.c.wake()
		}
	case !h.Fatal && d.f.givenUp() == nil:
		at := origins.Failed(d.rec.Origin, d.c.now(), policy.MinDelay, policy.MaxPause)
		if d.f.paced {
			d.next, d.stop, d.reading.again = at, errOriginDown, false
		}
	}
}

// decide says whether another attempt follows. The verdict on the last one is
// already there; it does not depend on any context.
func (d *drive) decide() bool {
	if !d.reading.again {
		return false
	}
	now := d.c.now()
	p := plan{
		policy: &d.c.cfg.Retry, now: now, started: d.started, deadline: d.f.deadline(),
		windowEnd: d.rec.FirstSent.Add(d.rec.Window - d.c.cfg.margin(d.rec.Window)),
		attempts:  d.attempts, inFlight: d.inFlight,
		scheduled: d.delay(), hint: d.hint,
	}
	if d.history.InDoubt() {
		p.lastAsk = p.windowEnd.Add(-d.rec.Window / 10)
	}
	d.wait, d.next, d.stop = p.next()
	if d.stop == nil {
		d.stop = cmp.Or(d.f.givenUp(), context.Cause(d.f.draining))
	}
	if d.stop != nil {
		if d.next.IsZero() {
			d.next = now.Add(d.wait)
		}
		return false
	}
	if !d.stands() {
		d.last.Drain()
	}
	d.waits.begin()
	d.observe(d.f.values, EventWaiting, func(e *Event) { e.Wait = d.wait })
	return true
}

// delay is the schedule's next wait; the schedule is made when it is needed.
func (d *drive) delay() time.Duration {
	policy := &d.c.cfg.Retry
	if d.schedule == nil {
		d.schedule = newSchedule(policy)
	}
	return clampDelay(d.schedule.NextBackOff(), d.prof.MinDelay, policy.MaxDelay)
}
