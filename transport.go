package oncehttp

import (
	"errors"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/profile"
)

// Transport is the client as an http.RoundTripper, for code that takes one.
//
// Its callers see plain HTTP: after the last attempt a 409, 429 or 5xx comes back
// as the response that it is. After an answer that proves that nothing happened
// nothing is left pending. After any other failure the operation is held for
// this caller, who was shown it and may act on it: the same key goes on, Resume
// leaves it alone, and Client.Lookup tells what is known. An operation whose
// process died before it answered is resumed.
//
// An http.Client over it may follow redirects. What it makes of the answer to an
// operation is sent only if it is a GET or HEAD to the same origin, and then
// without the key. Anything else is an error that matches ErrOutcomeUnknown and
// ErrRedirected and names the operation's key: posted again elsewhere, the request
// would take effect twice.
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
	const name = "round trip"
	first := redirectedFrom(req)
	if first == nil {
		return t.c.do(name, req, keySource{}, true)
	}
	read := request.Method(req) == http.MethodGet || request.Method(req) == http.MethodHead
	if !read || originOf(req.URL) != originOf(first.Request.URL) {
		closeBody(req)
		return nil, &Error{
			Op: name, Key: ResultOf(first).Key, Cause: errRedirectedElsewhere,
			is: []error{ErrOutcomeUnknown, ErrRedirected},
		}
	}
	resp, err := t.c.do(name, withoutKey(req, t.c.cfg.profileFor(req.URL)), keySource{}, true)
	if err == nil {
		resp.Request = req // by which the next redirect is recognised
	}
	return resp, err
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
