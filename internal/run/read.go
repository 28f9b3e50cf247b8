package run

import (
	"errors"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// This file holds the reading of a caller's request.

// givenBy returns the facts given by a call at now about its operation, beside the request itself.
func givenBy(req *http.Request, key keySource, plain bool, now time.Time) request.Given {
	g := request.Given{Generate: !key.chosen, PlainHTTP: plain, Queued: key.queued, Made: key.made, Now: now}
	if key.given {
		g.Keys = append(g.Keys, key.key)
	}
	if inContext, ok := req.Context().Value(inflight.RequestKey{}).(string); ok {
		g.Keys = append(g.Keys, string(inContext))
	}
	g.Account, g.Scoped = AccountFromContext(req.Context())
	g.OneOwner = request.OneOwner(req.Context())
	return g
}

// bodyGuest is the user's code that reads a request.
const bodyGuest = "the body of a request"

// read reads the caller's request, with its body, and closes the body in every case. It never changes the request.
// op is set also with an error, and then has only the names given by the call (named). The caller of read sets
// took.
func (c *Client) read(req *http.Request, key keySource, plain bool) (*preparedRequest, error) {
	c.visits.begin(bodyGuest)
	defer c.visits.end(bodyGuest)
	s, named, err := c.cfg.reader.Read(req, c.cfg.profileFor(req.URL), givenBy(req, key, plain, c.engine.now()))
	if err != nil {
		return &preparedRequest{named: named}, err
	}
	c.notices.tellCoverage(req.Context(), s)
	s.Record.Facts = c.cfg.factsOf(s.Profile)
	s.Record.KeepAnswer, s.Record.KeepKey, s.Record.KeepText = c.cfg.keeping(s.Record.Window)
	s.Record.KeepRequest = c.cfg.requestKeeping(s.Profile)
	return &preparedRequest{rec: &s.Record, prof: s.Profile, credentials: s.Credentials, target: &s.URL, read: s, named: named}, nil
}

// keyInFlight returns the key for an error while another call with it is under way.
func (op *preparedRequest) keyInFlight() string {
	return namedTo(operation.CallKey{Keyless: op.named.Keyless}, operation.SeesRunning, op.rec.Key)
}

// keyOnLeaving returns the key for the error of a caller leaving a call: its own call, or a call joined by it.
func (op *preparedRequest) keyOnLeaving(joined bool) string {
	if joined {
		return op.keyInFlight()
	}
	return namedTo(operation.CallKey{Keyless: op.named.Keyless}, operation.SeesOpen, op.rec.Key)
}

// journaled reports whether a request is an operation. Use same instead of req afterwards: its body may have been
// read to find a key. A misspelled method counts as an operation, so that read refuses it.
func (c *Client) journaled(req *http.Request) (same *http.Request, journaled bool) {
	method := request.Method(req)
	if request.Safe(method) {
		return req, false
	}
	if c.cfg.journals(method) || request.CheckMethod(method) != nil {
		return req, true
	}
	carries, same := c.cfg.reader.CarriesKey(req, c.cfg.profileFor(req.URL), givenBy(req, keySource{}, false, time.Time{}))
	return same, carries
}

// requestTrouble returns the sentinel for the failure to read a request.
func requestTrouble(err error) error {
	var e *request.Error
	switch {
	case !errors.As(err, &e):
		return ErrConfig
	case errors.Is(err, errNoNewKey):
		return ErrClosed
	}
	return map[request.Trouble]error{
		request.Invalid: ErrConfig, request.InvalidKey: ErrKeyInvalid,
		request.BodyTooLarge: ErrBodyTooLarge, request.HeaderTooLarge: ErrHeaderTooLarge,
		request.Ended: ErrNotSent,
	}[e.Trouble]
}

// sanitized removes URLs and quotes from a foreign error. errors.Is still works.
func sanitized(err error) error { return sanitize.Error(err) }

// closeBody closes the body of a request that is not sent, if it has one.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
