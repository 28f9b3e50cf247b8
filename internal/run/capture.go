package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/request"
)

const (
	captureName  = "capture"
	captureVisit = "Capture"
	captureGuest = "the function of Capture"
)

var (
	errNoFunction  = errors.New("no function")
	errCaptureOver = errors.New("the function of Capture has returned")
	errTwoAccounts = errors.New("the request's context names another account than that of Capture")
)

// Capturing is the Transport of one Capture. It is safe for concurrent use.
type Capturing struct {
	RoundTripper
	ctx context.Context
	key string

	mu     sync.Mutex
	over   bool             // the function has returned
	taken  *preparedRequest // the first operation
	out    *http.Request    // its request, to be handed out
	failed error            // the first failure
}

// Capture is oncehttp.Client.Capture. call gets the Transport for its requests.
func (c *Client) Capture(ctx context.Context, key string, call func(*Capturing) error) (*http.Request, error) {
	if err := c.checkCall(ctx, captureName, key); err != nil {
		return nil, err
	}
	refuse := func(cause error, why error) (*http.Request, error) {
		return nil, newError(captureName, unclear(key), cause, why)
	}
	switch {
	case call == nil:
		return refuse(errNoFunction, ErrConfig)
	case key == "":
		return refuse(errors.New("the key is empty"), ErrKeyInvalid)
	case checkAccount(ctx) != nil:
		return refuse(checkAccount(ctx), ErrConfig)
	case !c.enter(captureVisit):
		return refuse(nil, ErrClosed)
	}
	defer c.visits.leave(captureVisit)
	t := &Capturing{RoundTripper: c.Transport(), ctx: ctx, key: key}
	err := t.run(call)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.failed != nil:
		return nil, t.failed
	case t.out == nil && err != nil:
		return refuse(fmt.Errorf("the function made no operation: %w", sanitized(err)), ErrConfig)
	case t.out == nil:
		return refuse(errors.New("the function made no operation"), ErrConfig)
	}
	return t.out, nil
}

// run calls the function. Nothing is taken after its end, a panic included.
func (t *Capturing) run(call func(*Capturing) error) error {
	t.c.visits.begin(captureGuest)
	defer func() {
		t.c.visits.end(captureGuest)
		t.mu.Lock()
		t.over = true
		t.mu.Unlock()
	}()
	return call(t)
}

// RoundTrip takes a request that is an operation, and sends any other one. Each request counts as one with the key in its context.
func (t *Capturing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil {
		return nil, newError(captureName, unclear(t.key), errors.New("no request"), ErrConfig)
	}
	keyed := req
	if req.Context().Value(inflight.RequestKey{}) == nil {
		keyed = req.WithContext(context.WithValue(req.Context(), inflight.RequestKey{}, t.key))
	}
	return t.through(req, keyed, func(d declaration) (*http.Response, error) { return nil, t.take(d.req) })
}

// take keeps the request of the first operation. It always returns an error, since nothing is sent: with ErrCaptured if this is the
// operation that was taken.
func (t *Capturing) take(req *http.Request) error {
	op, out, err := t.read(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	captured := newError(captureName, unclear(t.key), nil, ErrCaptured)
	switch {
	case t.over:
		return newError(captureName, unclear(t.key), errCaptureOver, ErrConfig)
	case err != nil:
		err = newError(captureName, unclear(t.key), err, requestTrouble(err))
	case t.taken == nil:
		t.taken, t.out = op, out
		return captured
	case op.rec.ID == t.taken.rec.ID && op.read.Compare(t.taken.rec) == request.SameRequest:
		return captured
	default:
		err = newError(captureName, unclear(t.key), fmt.Errorf("a second operation, %s %s", op.rec.Method, request.Path(op.rec.Target)), ErrConfig)
	}
	if t.failed == nil {
		t.failed = err
	}
	return err
}

// read reads a request, and makes the one to be handed out: without a key in a header, with the body in memory, and with the context of
// Capture.
func (t *Capturing) read(req *http.Request) (op *preparedRequest, out *http.Request, err error) {
	ctx := context.WithValue(t.ctx, inflight.RequestKey{}, t.key)
	within := req.Context()
	account, named := AccountFromContext(t.ctx)
	switch other, has := AccountFromContext(within); {
	case named && has && other != account:
		closeBody(req)
		return nil, nil, &request.Error{Trouble: request.Invalid, Cause: errTwoAccounts}
	case named:
		within = ContextWithAccount(within, account)
	case has:
		ctx = ContextWithAccount(ctx, other)
	}
	bare := withoutKey(req, t.c.cfg.profileFor(req.URL)).WithContext(within)
	op, err = t.c.read(bare, keySource{key: t.key, given: true, chosen: true, queued: true}, false)
	if err != nil {
		return nil, nil, err
	}
	out = request.Rereadable(bare.WithContext(ctx), op.rec.Body)
	//lint:ignore SA1019 the caller of the function may have set it
	out.Cancel = nil
	return op, out, nil
}
