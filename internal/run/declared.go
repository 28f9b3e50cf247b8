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

// declarations tells if requests through Transport are operations. It is safe for concurrent use.
type declarations struct {
	cfg    *Config
	visits *visits
}

// declaration tells if a request through Transport is an operation.
type declaration struct {
	req       *http.Request // to be used from now on: a body may have been read to find a key
	operation bool
	made      *request.Made // NewKey's answer, if it was asked
}

// declared looks at a request through Transport. In the end, whatever Operation or NewKey do, the request's body is either in the
// declaration or closed.
func (s *declarations) declared(req *http.Request) (d declaration) {
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
	p := s.cfg.profileFor(req.URL)
	d.operation, d.req = s.cfg.reader.Carries(req, p)
	if !d.operation {
		d.operation, d.made = s.declares(d.req, p)
	}
	decided = true
	return d
}

// declares reports whether a request without a key is an operation all the same, and returns NewKey's answer if NewKey was asked.
func (s *declarations) declares(req *http.Request, p *profile.Profile) (operation bool, made *request.Made) {
	cfg, method := s.cfg, request.Method(req)
	_, keyed := req.Context().Value(inflight.RequestKey{}).(string)
	switch {
	case cfg.methodsHold && cfg.listsMethod(method):
		return true, nil
	case !cfg.methodsSet && cfg.named(p) && cfg.reader.AtEndpoint(req, p):
		return true, nil
	case cfg.Operation != nil:
		if operation, made = s.askOperation(req); operation {
			return true, made
		}
	case keyed && request.Writes(cfg.reader.Shown(req)):
		return true, nil
	}
	if keyed || cfg.randomKeys || !cfg.listsMethod(method) || !cfg.reader.MayMake(p) {
		return false, nil
	}
	return s.askNewKey(req)
}

// askOperation asks Config.Operation. If the request comes from Operation itself, it is an operation without a key.
func (s *declarations) askOperation(req *http.Request) (operation bool, made *request.Made) {
	asking := (*operationAsked)(s)
	if inflight.From(req.Context()).Names(asking) {
		return true, &request.Made{Err: errAsksItself}
	}
	if s.visits.enter(roundTripVisit) { // it is asked after Close, too: a request not named by it passes
		defer s.visits.leave(roundTripVisit)
	}
	work := inflight.NewNaming(req.Context(), asking)
	defer work.End()
	shown := s.cfg.reader.Shown(req)
	return s.cfg.Operation(shown.WithContext(work.Context(req.Context()))), nil
}

// operationAsked is a client in the role of asking its Operation.
type operationAsked declarations

// askNewKey asks Config.NewKey. The request is an operation, with its key or its error, unless the error is ErrNoKey.
func (s *declarations) askNewKey(req *http.Request) (operation bool, made *request.Made) {
	if s.visits.enter(roundTripVisit) {
		defer s.visits.leave(roundTripVisit)
	}
	made = s.cfg.reader.Make(req)
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
