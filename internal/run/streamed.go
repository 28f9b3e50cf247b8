package run

import (
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
)

// streamed is one request of a passThrough with its attempts. A request with a method safe or idempotent by definition is sent again
// after an error, or a 429, 502, 503 or 504; any other only if nothing of it left. Its body must be readable again.
type streamed struct {
	passThrough
	req        *http.Request               // the caller's
	idempotent bool                        // it may be sent again after an unknown end
	started    time.Time                   // its first attempt
	schedule   *backoff.ExponentialBackOff // nil before the first wait
	attempts   int                         // so far
	sent       bool                        // some attempt may have left
	last       flowed                      // the result of the last attempt
	wait       time.Duration               // before the next attempt
}

// do sends a request that is no operation, with the attempts that the policy allows, and returns the answer. It makes the first attempt
// itself. The loop of go-retryablehttp makes the others, and gets empty answers: the real one is in s.last.
func (p passThrough) do(req *http.Request) (*http.Response, error) {
	// The first attempt is made without the loop: most need no other.
	s := &streamed{passThrough: p, req: req, idempotent: request.Idempotent(request.Method(req)), started: p.engine.now()}
	s.try()
	if s.unfinished() {
		ctx, cancel := context.WithCancel(req.Context()) // its end ends a wait, but not an attempt
		defer cancel()
		defer context.AfterFunc(p.draining, cancel)()
		loop := retryablehttp.Client{
			HTTPClient: &http.Client{Transport: transportFunc(s.inLoop)}, CheckRetry: s.waits, Backoff: s.backoff,
			RetryMax: math.MaxInt32, ErrorHandler: retryablehttp.PassthroughErrorHandler, // next has the bounds
		}
		_, _ = loop.Do(&retryablehttp.Request{Request: newLoopRequest().WithContext(ctx)}) // its error is the error of a wait cut short
	}
	if s.last.err == nil {
		return s.last.resp, nil
	}
	return nil, streamError("do", request.Safe(request.Method(req)), s.sent, s.attempts, s.last.err)
}

// try makes one attempt of a request that passes through without a record, and keeps its result.
func (s *streamed) try() {
	s.attempts++
	s.last = s.attempt(s.req, s.attempts)
	s.sent = s.sent || !s.last.unsent
}

// unfinished reports whether a request that is no operation is sent once more: after an error that proves that nothing was sent, and for an
// idempotent method also after any other error, and after 429, 502, 503 and 504.
func (s *streamed) unfinished() bool {
	if s.last.err != nil {
		return s.idempotent || s.last.unsent
	}
	return s.idempotent && slices.Contains([]int{429, 502, 503, 504}, s.last.resp.StatusCode)
}

// inLoop is the loop's transport. Its first call makes no attempt, since do made one already. An answer before a wait is kept until the
// end of the wait: it is the caller's if the wait is cut short.
func (s *streamed) inLoop(loop *http.Request) (*http.Response, error) {
	// Without a wait there was no decision for another attempt: this is the loop's first call.
	if s.wait > 0 {
		if s.last.resp != nil {
			wire.Drain(s.last.resp.Body)
		}
		s.try()
	}
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: loop}, nil
}

// waits reports whether the loop waits for another attempt. The arguments are not used; err is always nil.
func (s *streamed) waits(context.Context, *http.Response, error) (again bool, err error) {
	return s.unfinished() && s.next(), nil
}

// backoff returns the wait until the next attempt, in the form that go-retryablehttp's loop asks for. next has chosen it before.
func (s *streamed) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return s.wait }

// next chooses the wait before the next attempt of a request that is no operation, at least a nanosecond. An idempotent method has attempts of its own
// (SafeAttempts). It returns false if there is none: the policy allows no other attempt, it would fail alike (fatal), or the body cannot be read again. No key
// protects the request, so no window bounds it: WindowEnd is set past all attempts.
func (s *streamed) next() bool {
	// Made late: most requests never wait.
	if s.schedule == nil {
		s.schedule = newSchedule(&s.cfg.Retry)
	}
	limits, now := s.cfg.drives, s.engine.now()
	if s.idempotent {
		limits.MaxAttempts = s.cfg.Retry.SafeAttempts
	}
	deadline, _ := s.req.Context().Deadline()
	next := operation.Plan{
		Client: &limits, Now: now, Started: s.started, Deadline: deadline, Attempts: s.attempts,
		WindowEnd: s.started.Add(s.cfg.Retry.MaxElapsed + time.Hour), // no key, no window
		Scheduled: operation.ClampDelay(s.schedule.NextBackOff(), 0, s.cfg.Retry.MaxDelay),
	}
	if s.last.resp != nil {
		next.Hint = classify.Wait(s.cfg.profiles().at(s.req.URL).RetryAfter, classify.Answer{Header: s.last.resp.Header}, now)
	}
	wait, _, stop := next.Next()
	s.wait = max(wait, 1)
	// The first attempt has read the body.
	rewindable := s.req.Body == nil || s.req.Body == http.NoBody || s.req.GetBody != nil
	return rewindable && !s.last.fatal && stop == operation.GoesOn
}
