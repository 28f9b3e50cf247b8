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
	RoundTripper                 // sends what is no operation
	ctx          context.Context // of Capture: the request handed out has it
	key          string          // of Capture

	mu     sync.Mutex
	over   bool             // the function has returned
	taken  *preparedRequest // the first operation
	out    *http.Request    // its request, to be handed out
	byKey  bool             // nothing but the key of Capture declares it an operation
	failed error            // the first failure
}

// Capture implements oncehttp.Client.Capture: it returns the request that call would send as an operation, and does not send it. call gets the
// Transport for its requests.
func (c *Client) Capture(ctx context.Context, key string, call func(*Capturing) error) (*http.Request, error) {
	if err := checkCall(ctx, c, captureName, key); err != nil {
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
	// The function's own error counts only if it made no operation: an SDK makes an error of ErrCaptured.
	// A Transport like any other, so that an SDK needs nothing but it.
	t := &Capturing{RoundTripper: c.Transport(), ctx: ctx, key: key}
	// On this goroutine: the function may use values that are bound to it.
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
	case t.byKey && err != nil && !errors.Is(err, ErrCaptured): // the operation may be another request, such as a login
		return refuse(fmt.Errorf("nothing says that %s is the operation, and the function's error is not ErrCaptured: %w; name the operation by Config.Operation",
			t.taken.called(), sanitized(err)), ErrConfig)
	}
	return t.out, nil
}

// run calls call, the function of a Capture. Requests after its end, or after its panic, are not captured any more. While it runs, a Close that waits in vain can
// name it (captureGuest).
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

// RoundTrip keeps a request that is an operation, sends nothing, and returns an error: ErrCaptured for the first one, and for the same one again. Any other request
// is sent. Each request counts as one with the key of the Capture, unless its context has another.
func (t *Capturing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil {
		return nil, newError(captureName, unclear(t.key), errors.New("no request"), ErrConfig)
	}
	keyed := req
	if req.Context().Value(inflight.RequestKey{}) == nil {
		keyed = req.WithContext(context.WithValue(req.Context(), inflight.RequestKey{}, t.key))
	}
	return t.through(req, keyed, func(d declaration) (*http.Response, error) { return nil, t.take(d) })
}

// take keeps the request of the first operation. It always returns an error, since nothing is sent: with ErrCaptured if this is the
// operation that was taken.
func (t *Capturing) take(d declaration) error {
	// Before the lock: reading a body may take long.
	op, out, err := t.read(d)
	t.mu.Lock()
	defer t.mu.Unlock()
	captured := newError(captureName, unclear(t.key), nil, ErrCaptured)
	switch {
	case t.over:
		return newError(captureName, unclear(t.key), errCaptureOver, ErrConfig)
	case err != nil:
		err = newError(captureName, unclear(t.key), err, requestTrouble(err))
	case t.taken == nil:
		t.taken, t.out, t.byKey = op, out, d.byContext
		return captured
	case op.rec.ID == t.taken.rec.ID && op.read.Compare(t.taken.rec) == request.SameRequest: // the SDK tries again
		return captured
	default:
		err = newError(captureName, unclear(t.key), fmt.Errorf("a second operation, %s", op.called()), ErrConfig)
	}
	if t.failed == nil {
		t.failed = err
	}
	return err
}

// called returns the method and path of the operation, for an error.
func (op *preparedRequest) called() string { return op.rec.Method + " " + request.Path(op.rec.Target) }

// strange reports whether Capture refuses to take this request for an operation: only the key in its context declares it one, and it is at none of
// the endpoints of the profile that the user named for its URL.
func (t *Capturing) strange(d declaration) bool {
	p := t.c.cfg.profiles().at(d.req.URL)
	return d.byContext && t.c.cfg.profiles().named(p) && len(p.Endpoints) > 0 && !t.c.cfg.reader.Endpoints.Has(d.req, p)
}

// read reads a request, and makes the one to be handed out: without a key in a header, with the body in memory, and with the context of Capture. It refuses an
// operation at none of the endpoints of a named profile. The key of the Capture is required (chosen: none is generated), and read as for an Enqueue (queued):
// nothing is sent.
func (t *Capturing) read(d declaration) (op *preparedRequest, out *http.Request, err error) {
	req := d.req
	if t.strange(d) {
		closeBody(req)
		return nil, nil, &request.Error{Trouble: request.Invalid, Cause: fmt.Errorf("%s %s is at no endpoint of the profile %s: it is not captured, and not sent; "+
			"say by Config.Operation which requests are operations, and the others pass", request.Method(req), req.URL.Path, t.c.cfg.profiles().at(req.URL).Name)}
	}
	// The request handed out has the key in its context, and not in a header: Do puts it there.
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
	bare := withoutKey(req, t.c.cfg.profiles().at(req.URL)).WithContext(within)
	op, err = readRequest(t.c, bare, keySource{key: t.key, given: true, chosen: true, queued: true}, false)
	if err != nil {
		return nil, nil, err
	}
	// With a GetBody: the caller may send it more than once.
	out = request.Rereadable(bare.WithContext(ctx), op.rec.Body)
	//lint:ignore SA1019 the caller of the function may have set it
	out.Cancel = nil
	return op, out, nil
}
