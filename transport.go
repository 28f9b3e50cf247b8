package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/profile"
)

// Transport is the client as an http.RoundTripper, for code that takes one.
//
// Its callers see plain HTTP: after the last attempt a 409, 429 or 5xx comes back
// as the response that it is. After an attempt that may have taken effect only an
// answer comes back that settles the matter or that claims nothing (409, 5xx);
// any other (a 401, a 429, a redirect) would say to its caller that nothing
// happened, and is an error that matches ErrOutcomeUnknown, with the answer in
// Error.Answer. After an answer that proves that nothing happened
// nothing is left pending. After any other failure the operation is held for
// this caller, who was shown it and may act on it: the same key goes on, Resume
// leaves it alone, and Client.Lookup tells what is known. An operation whose
// process died before it answered is resumed.
//
// An http.Client over it may follow redirects. What it makes of the answer to an
// operation is sent only if it is a GET or HEAD to the same origin, and then
// without the key. Anything else is an error that matches ErrRedirected and names the
// operation's key: posted again elsewhere, the request would take effect twice. With
// ErrFinal where the answer was final, else with ErrOutcomeUnknown.
//
// It is not quite what net/http asks of a RoundTripper: it waits and sends again.
func (c *Client) Transport() http.RoundTripper { return roundTripper{c} }

// StandardClient is an *http.Client over Transport, for generated SDKs. It
// follows no redirects. Switch the SDK's own retries off (stripe-go:
// MaxNetworkRetries 0): two loops multiply each other's attempts.
//
// An SDK that makes a new key for each call (stripe-go without SetIdempotencyKey)
// makes two calls two operations; give it keys of the business.
//
// Set no Timeout on it: it would span all attempts and waits, and cut the last.
func (c *Client) StandardClient() *http.Client {
	return &http.Client{
		Transport:     c.Transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type roundTripper struct{ c *Client }

// RoundTrip sends req as an operation, or streams it.
func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil || req.Response == nil || t.c.unusable(req.Context()) != nil { // net/http made it from no answer
		return t.c.do(roundTripName, req, keySource{}, true)
	}
	first, p := redirectedFrom(req), t.c.cfg.profileFor(req.URL)
	if first == nil && !t.operation(req, p) {
		return t.c.do(roundTripName, req, keySource{}, true)
	}
	read := request.Method(req) == http.MethodGet || request.Method(req) == http.MethodHead
	if first == nil || !read || request.Origin(req.URL) != request.Origin(first.Request.URL) {
		closeBody(req)
		return nil, newError(roundTripName, redirected(first), errRedirectedElsewhere, ErrRedirected)
	}
	resp, err := t.c.do(roundTripName, withoutKey(req, p), keySource{}, true)
	if err == nil {
		resp.Request = req // by which the next redirect is recognised
	}
	return resp, err
}

const roundTripName = "round trip"

// The names of a Do, and of a RoundTrip of an operation, for Close.
const (
	doVisit        = "Do"
	roundTripVisit = "RoundTrip"
)

// operation reports whether a request that net/http made by following a redirect can only come from an operation,
// although its answer is not recognised, since a wrapper around this transport replaced Response.Request: its method
// is journaled, or it has a key.
func (t roundTripper) operation(req *http.Request, p *profile.Profile) bool {
	return t.c.cfg.journals(request.Method(req)) || len(withoutKey(req, p).Header) < len(req.Header)
}

var errRedirectedElsewhere = errors.New("what an HTTP client made of the answer is not sent: only a GET or HEAD to the same origin would be")

// redirectedFrom returns the answer to an operation of this package from which net/http made req by following
// redirects, or nil if it made it from none.
func redirectedFrom(req *http.Request) *http.Response {
	for resp := req.Response; resp != nil && resp.Request != nil; resp = resp.Request.Response {
		if ResultOf(resp).Key != "" {
			return resp
		}
	}
	return nil
}

// redirected returns the operation that first, the answer to it, led away from.
func redirected(first *http.Response) subject {
	result := ResultOf(first)
	about := unclear(result.Key)
	if result.Effect == EffectHappened || result.Effect == EffectRefused {
		about.standing = operation.Answered(first.StatusCode, result.AlreadyDone, result.Effect == EffectRefused)
	}
	return about
}

// withoutKey is a copy of req without the header in which p's keys travel.
func withoutKey(req *http.Request, p *profile.Profile) *http.Request {
	out := req.Clone(req.Context())
	for name := range out.Header {
		if p.Carrier.Place == profile.Header && strings.EqualFold(name, p.Carrier.Name) {
			delete(out.Header, name)
		}
	}
	return out
}

// passThrough sends requests that are no operation: nothing is recorded, and bodies
// flow. A safe method (RFC 9110 section 9.2.1) is sent again after an error, or
// a 429, 502, 503 or 504; any other only if nothing of it left, and only if its
// body can be read again.
type passThrough struct {
	*Client
	draining context.Context // after its end no further attempt is made
	cutting  context.Context // its end ends an attempt that has no answer
}

// flowed is the result of one attempt of a passThrough: either resp or err is set.
type flowed struct {
	resp *http.Response
	err  error
	// unsent: it is proved that nothing was sent. fatal: another attempt would fail alike.
	unsent, fatal bool
}

// do makes attempts until no further one is needed or allowed.
func (p passThrough) do(req *http.Request) (*http.Response, error) {
	safe := request.Safe(request.Method(req))
	schedule, started, sent := newSchedule(&p.cfg.Retry), p.engine.now(), false
	for attempt := 1; ; attempt++ {
		f := p.attempt(req, attempt)
		sent = sent || !f.unsent
		if f.err == nil && !(safe && comesAgain(f.resp.StatusCode)) {
			return f.resp, nil
		}
		wait, more := p.next(req, &f, attempt, started, schedule.NextBackOff())
		if mayRepeat := f.err == nil || safe || f.unsent; !mayRepeat || !more || p.pause(req.Context(), wait) != nil {
			if f.err == nil {
				return f.resp, nil
			}
			return nil, streamError("do", safe, sent, attempt, f.err)
		}
		if f.resp != nil {
			wire.Drain(f.resp.Body)
		}
	}
}

// pause waits before the next attempt, unless ctx ends, or the client is closed.
func (p passThrough) pause(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.draining, cancel)()
	return pause(ctx, wait)
}

// next returns the wait before the next attempt; more is false if none may follow.
func (p passThrough) next(req *http.Request, f *flowed, attempts int, started time.Time, scheduled time.Duration) (wait time.Duration, more bool) {
	policy := &p.cfg.Retry
	deadline, _ := req.Context().Deadline()
	next := operation.Plan{
		Client: &p.cfg.drives, Now: p.engine.now(), Started: started, Deadline: deadline, Attempts: attempts,
		WindowEnd: started.Add(policy.MaxElapsed + time.Hour), // no key, no window
		Scheduled: operation.ClampDelay(scheduled, 0, policy.MaxDelay),
	}
	if f.resp != nil {
		next.Hint = classify.Wait(p.cfg.profileFor(req.URL).RetryAfter, classify.Answer{Header: f.resp.Header}, next.Now)
	}
	wait, _, stop := next.Next()
	rewindable := req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
	return wait, rewindable && !f.fatal && stop == operation.GoesOn
}

// attempt makes one attempt. AttemptTimeout bounds the wait for the answer's headers,
// from when the request's body was sent; the answer's body has no time limit.
func (p passThrough) attempt(req *http.Request, attempt int) (f flowed) {
	prepare := func(ctx context.Context) (*http.Request, error) { return p.prepareSend(req, ctx, attempt) }
	work := inflight.NewStream(req.Context(), p.Client)
	defer work.End()
	f.resp, f.unsent, f.fatal, f.err = wire.Stream(work.Context(req.Context()), p.cutting, p.cfg.Transport, p.cfg.Retry.AttemptTimeout, prepare)
	f.err = sanitized(f.err)
	return f
}

// prepareSend makes the request of one attempt, with a URL and headers of its own; the
// first gets the request's own body. The caller must close its body also beside an error.
func (p passThrough) prepareSend(req *http.Request, ctx context.Context, attempt int) (*http.Request, error) {
	out := req.Clone(ctx)
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	if attempt > 1 && req.GetBody != nil {
		body, err := req.GetBody()
		out.Body = body
		if err != nil {
			return out, sanitized(err)
		}
	}
	request.BasicAuth(out, req.URL.User)
	err := p.authorize(out, req)
	if !request.Safe(request.Method(req)) {
		out.GetBody = nil // so that net/http does not send it again by itself
	}
	return out, err
}

// authorize lets Config.Authorize add credentials to out, a clone of req, which it may read by GetBody.
func (p passThrough) authorize(out, req *http.Request) error {
	if p.cfg.Authorize == nil {
		return nil
	}
	origin, ctx := request.Origin(req.URL), out.Context()
	if !p.cfg.originAllowed(origin) {
		return nil
	}
	around := inflight.From(ctx)
	if around.Authorizes(origin) { // for the sake of such a request it was made
		return nil
	}
	work := around.Authorizing(origin)
	defer work.End()
	given := *out
	given.URL = req.URL
	shown := out.WithContext(work.Context(ctx))
	err := p.cfg.Authorize(shown)
	switch {
	case err != nil:
		err = fmt.Errorf("from Authorize: %w", sanitized(err))
	case shown.Method != given.Method || shown.URL == nil || shown.URL.String() != given.URL.String() || shown.Host != given.Host || shown.Body != given.Body:
		err = request.ErrChanged
	}
	*out = *shown.WithContext(ctx)
	out.Body, out.GetBody = given.Body, given.GetBody // the one to close, even if Authorize replaced it
	return err
}

// comesAgain reports whether a safe request is sent again after an answer of this status.
func comesAgain(status int) bool {
	return slices.Contains([]int{429, 502, 503, 504}, status)
}

// streamError makes the error of a request that was not journaled. With a safe method it is always ErrNoEffect, since
// such a method has no effect by definition. sent: some attempt of it may have left.
func streamError(name string, safe, sent bool, attempts int, err error) error {
	about := unclear("")
	if safe || !sent {
		about = nothing("")
		about.sent = sent
	}
	e := newError(name, about, nil, ErrNotSent)
	e.Attempts, e.Last = attempts, err
	return e
}

// pause waits for d. If ctx ends first, it returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
