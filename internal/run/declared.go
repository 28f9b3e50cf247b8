package run

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/profile"
)

// This file holds the choice of operations among the requests through Transport: those declared. Everything else is net/http.

// errAsksItself refuses a request made by Operation through its own client: Operation would be asked for this one, too, and so on for ever.
var errAsksItself = &request.Error{Trouble: request.InvalidKey, Cause: errors.New("in Operation a request was made through its client, for which it would be asked, too")}

// declaration tells if a request through Transport is an operation.
type declaration struct {
	req       *http.Request // to be used from now on: a body may have been read to find a key
	operation bool
	made      *request.Made // NewKey's answer, if it was asked
}

// declared looks at a request through Transport. In the end, whatever Operation or NewKey do, the request's body is either in the
// declaration or closed.
func (c *Client) declared(req *http.Request) (d declaration) {
	decided := false
	defer func() {
		if !decided { // a panic of a function of the user
			closeBody(req)
		}
	}()
	d = declaration{req: req}
	if request.Safe(request.Method(req)) {
		decided = true
		return d
	}
	p := c.cfg.profileFor(req.URL)
	d.operation, d.req = c.cfg.reader.Carries(req, p)
	if !d.operation {
		d.operation, d.made = c.declares(d.req, p)
	}
	decided = true
	return d
}

// declares reports whether a request without a key is an operation all the same, and returns NewKey's answer if NewKey was asked.
func (c *Client) declares(req *http.Request, p *profile.Profile) (operation bool, made *request.Made) {
	cfg, method := &c.cfg, request.Method(req)
	_, keyed := req.Context().Value(inflight.RequestKey{}).(string)
	switch {
	case cfg.methodsHold && cfg.listsMethod(method):
		return true, nil
	case !cfg.methodsSet && cfg.named(p) && cfg.reader.AtEndpoint(req, p):
		return true, nil
	case cfg.Operation != nil:
		if operation, made = c.askOperation(req); operation {
			return true, made
		}
	case keyed && request.Writes(cfg.reader.Shown(req)):
		return true, nil
	}
	if keyed || cfg.randomKeys || !cfg.listsMethod(method) || !cfg.reader.MayMake(p) {
		return false, nil
	}
	return c.askNewKey(req)
}

// askOperation asks Config.Operation. If the request comes from Operation itself, it is an operation without a key.
func (c *Client) askOperation(req *http.Request) (operation bool, made *request.Made) {
	asking := (*operationAsked)(c)
	if inflight.From(req.Context()).Names(asking) {
		return true, &request.Made{Err: errAsksItself}
	}
	if c.visits.enter(roundTripVisit) { // it is asked after Close, too: a request not named by it passes
		defer c.visits.leave(roundTripVisit)
	}
	work := inflight.NewNaming(req.Context(), asking)
	defer work.End()
	shown := c.cfg.reader.Shown(req)
	return c.cfg.Operation(shown.WithContext(work.Context(req.Context()))), nil
}

// operationAsked is the client in the role of asking its Operation.
type operationAsked Client

// askNewKey asks Config.NewKey. The request is an operation, with its key or its error, unless the error is ErrNoKey.
func (c *Client) askNewKey(req *http.Request) (operation bool, made *request.Made) {
	if c.visits.enter(roundTripVisit) {
		defer c.visits.leave(roundTripVisit)
	}
	made = c.cfg.reader.Make(req)
	if errors.Is(made.Err, ErrNoKey) {
		return false, nil
	}
	return true, made
}

// listsMethod reports whether a method is one of Methods in any letter case. A request with another letter case is an operation, and is
// refused.
func (c *Config) listsMethod(method string) bool {
	return slices.ContainsFunc(c.Methods, func(m string) bool { return strings.EqualFold(m, method) })
}

// named reports whether the user named a profile.
func (c *Config) named(p *profile.Profile) bool { return c.profileSet || p != c.Profile }
