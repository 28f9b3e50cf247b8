package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/profile"
)

// RoundTripper sends requests of callers of plain HTTP.
type RoundTripper struct{ c *Client }

// Transport returns the RoundTripper of c: it sends a request that is declared an operation as one, and any other as net/http does.
func (c *Client) Transport() RoundTripper { return RoundTripper{c} }

// BeginsOperations marks this type, and does nothing. New refuses a Transport with this method, since such a Transport begins operations itself.
func (RoundTripper) BeginsOperations() {}

// RoundTrip sends req as an operation, if it is declared one, else as net/http does. The caller sees plain HTTP (true). For a call that cannot begin, do makes
// the error.
func (t RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil || unusable(req.Context(), t.c) != nil {
		return t.c.do(roundTripName, req, keySource{}, true)
	}
	return t.through(req, req, func(d declaration) (*http.Response, error) {
		return t.c.do(roundTripName, d.req, keySource{made: d.made}, true)
	})
}

// through sends req as net/http does or, if it is declared an operation, hands it to operate. asked is req, or a copy of it with another
// context, and is what the declaration is decided by.
func (t RoundTripper) through(req, asked *http.Request, operate func(declaration) (*http.Response, error)) (*http.Response, error) {
	// net/http has followed the redirect of an operation: its request is a new one, and never the operation.
	if first := redirectedFrom(req); first != nil {
		return t.follow(req, first)
	}
	// It may ask Config.Operation and NewKey, and may read the body to find a key.
	d := t.c.declarations.declared(asked)
	if req.Response != nil && (d.operation || t.keyLeft(req)) {
		// It may come from an operation with an unrecognised answer: a wrapper around this transport replaces Response.Request.
		closeBody(d.req)
		return nil, newError(roundTripName, unclear(""), errRedirectedElsewhere, ErrRedirected)
	}
	if d.operation {
		return operate(d)
	}
	if d.req == asked {
		return t.pass(req, req)
	}
	return t.pass(req, d.req.WithContext(req.Context())) // its body was read
}

// keyLeft reports whether a request, made by net/http from a redirect, has a key possibly taken over from an operation: a request before it was no read, or is
// not known. A chain of reads alone began with no operation.
func (t RoundTripper) keyLeft(req *http.Request) bool {
	if len(withoutKey(req, t.c.cfg.profiles().at(req.URL)).Header) == len(req.Header) {
		return false
	}
	for resp := req.Response; resp != nil; resp = resp.Request.Response {
		if resp.Request == nil || !request.Safe(request.Method(resp.Request)) {
			return true
		}
	}
	return false
}

// follow sends a request that net/http has made from first, the answer to an operation and a redirect: a read at the same origin, without
// the key. It refuses any other: that might take effect a second time.
func (t RoundTripper) follow(req *http.Request, first *http.Response) (*http.Response, error) {
	read := request.Method(req) == http.MethodGet || request.Method(req) == http.MethodHead
	if !read || request.Origin(req.URL) != request.Origin(first.Request.URL) {
		closeBody(req)
		return nil, newError(roundTripName, redirected(first), errRedirectedElsewhere, ErrRedirected)
	}
	return t.pass(req, withoutKey(req, t.c.cfg.profiles().at(req.URL)))
}

// CloseIdleConnections closes the idle connections of Config.Transport, if the Transport has this method.
func (t RoundTripper) CloseIdleConnections() {
	if unusable(context.Background(), t.c) != nil {
		return
	}
	// countedTransport has no such method: the Transport beneath may have it.
	if beneath, ok := uncounted(t.c.cfg.Transport).(interface{ CloseIdleConnections() }); ok {
		beneath.CloseIdleConnections()
	}
}

const roundTripName = "round trip"

// The names of a Do, and of a RoundTrip of an operation, for Close.
const (
	doVisit        = "Do"
	roundTripVisit = "RoundTrip"
)

var errRedirectedElsewhere = errors.New("what an HTTP client made of the answer is not sent: only a GET or HEAD to the same origin would be")

// redirectedFrom returns the answer to an operation of this package, if net/http made req from it by following
// redirects. It returns nil if there is no such answer, or it is not recognised.
func redirectedFrom(req *http.Request) *http.Response {
	for resp := req.Response; resp != nil && resp.Request != nil; resp = resp.Request.Response {
		if ResultOf(resp).Key != "" {
			return resp
		}
	}
	return nil
}

// redirected returns what an error says of an operation: its key, and its effect as its answer tells it. first is that answer, a redirect that
// net/http has followed.
func redirected(first *http.Response) subject {
	result := ResultOf(first)
	about := unclear(result.Key)
	about.standing = operation.Told(result.Effect, first.StatusCode, result.AlreadyDone)
	return about
}

// withoutKey returns a copy of req without the header in which profile p sends its keys.
func withoutKey(req *http.Request, p *profile.Profile) *http.Request {
	out := req.Clone(req.Context())
	for name := range out.Header {
		if p.Carrier.Place == profile.Header && strings.EqualFold(name, p.Carrier.Name) {
			delete(out.Header, name)
		}
	}
	return out
}

// passThrough sends requests other than operations: nothing is recorded, and bodies
// are streamed.
type passThrough struct {
	*Client
	draining context.Context // after its end no further attempt is made
	cutting  context.Context // its end ends an attempt without an answer
}

// flowed is the result of one attempt of a passThrough: either resp or err is set.
type flowed struct {
	resp *http.Response // nil beside an error
	err  error          // of this attempt
	// unsent: provably, nothing was sent. fatal: another attempt would fail alike.
	unsent, fatal bool
}

// attempt makes one attempt. AttemptTimeout bounds the wait for the answer's headers,
// from when the request's body was sent; the answer's body has no time limit.
func (p passThrough) attempt(req *http.Request, attempt int) (f flowed) {
	prepare := func(ctx context.Context) (*http.Request, error) { return p.prepareSend(req, ctx, attempt) }
	// By its context a call that a function of the user makes shows that the attempt waits for it.
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
	// The first attempt has used up the body.
	if attempt > 1 && req.GetBody != nil {
		body, err := req.GetBody()
		out.Body = body
		if err != nil {
			return out, sanitized(err)
		}
	}
	// The user in a URL is a credential, as for net/http.
	request.BasicAuth(out, req.URL.User)
	err := p.authorize(out, req)
	if !request.Safe(request.Method(req)) {
		out.GetBody = nil // so that net/http does not send it again by itself
	}
	return out, err
}

// authorize lets Config.Authorize add credentials to out, a clone of req, if this client sends to its origin. Authorize may read the body by GetBody. A change of
// the method, the URL, the host or the body by it is an error.
func (p passThrough) authorize(out, req *http.Request) error {
	if p.cfg.Authorize == nil {
		return nil
	}
	origin, ctx := request.Origin(req.URL), out.Context()
	if !p.cfg.gate().allows(origin) {
		return nil
	}
	around := inflight.From(ctx)
	if around.Authorizes(origin) { // it was made to authorize such a request
		return nil
	}
	work := around.Authorizing(origin)
	defer work.End()
	// As it was before Authorize: what is compared below, and what is put back.
	given := *out
	// Authorize may change the URL behind the pointer: the caller's own is compared.
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

// streamError returns the error of a request that is no operation, and has no record. safe: the method has no effect by definition, so the error is always
// ErrNoEffect. sent: an attempt may have reached the server. attempts is their number, err the last failure. The error matches ErrNotSent only if nothing was
// sent.
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
