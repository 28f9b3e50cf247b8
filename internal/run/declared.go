package run

import (
	"errors"
	"net/http"

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
	operation bool          // else it passes as it is
	made      *request.Made // NewKey's answer, if it was asked
	byContext bool          // nothing but the key in its context declares it one
}

// declared looks at a request through Transport, and returns whether it is an operation, with NewKey's answer if NewKey was asked. A request with a safe method
// never is one. In the end, whatever Operation or NewKey do, the request's body is either in the declaration, to be used instead of req, or closed.
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
	p := s.cfg.profiles().at(req.URL)
	// A key in the request decides alone: no function of the user is asked.
	d.operation, d.req = s.cfg.reader.Carries(req, p)
	if !d.operation {
		d.operation, d.made, d.byContext = s.declares(d.req, p)
	}
	decided = true
	return d
}

// declares reports whether a request without a key is an operation all the same: by Config.Methods, if set (methodsHold), by the endpoints of the profile that
// the user named (unless Methods is set), by Config.Operation, by a key in its context (byContext: by that alone), or by Config.NewKey, asked for a method of
// Methods without such a key. made is NewKey's answer, if it was asked.
func (s *declarations) declares(req *http.Request, p *profile.Profile) (operation bool, made *request.Made, byContext bool) {
	cfg, method := s.cfg, request.Method(req)
	_, keyed := req.Context().Value(inflight.RequestKey{}).(string)
	switch {
	case cfg.methodsHold && cfg.listsMethod(method):
		return true, nil, false
	case !cfg.methodsSet && cfg.profiles().named(p) && cfg.reader.Endpoints.Has(req, p):
		return true, nil, false
	case cfg.Operation != nil:
		if operation, made = s.askOperation(req); operation {
			return true, made, false
		}
	// A POST or PATCH, without those that only read, such as a query of GraphQL.
	case keyed && request.Writes(cfg.reader.Bodies.Shown(req)):
		return true, nil, true
	}
	// randomKeys: there is no NewKey. MayMake: a key not made of business data may not go into a body, where it would make another request of each repeat.
	if keyed || cfg.randomKeys || !cfg.listsMethod(method) || !cfg.reader.Keys.MayMake(p) {
		return false, nil, false
	}
	operation, made = s.askNewKey(req)
	return operation, made, false
}

// askOperation asks Config.Operation whether a request is an operation. A request that Operation itself sends is one, with an error in made in place of a key, so
// that it is refused and not asked about without an end. Otherwise made is nil.
func (s *declarations) askOperation(req *http.Request) (operation bool, made *request.Made) {
	asking := (*operationAsked)(s)
	if inflight.From(req.Context()).Names(asking) {
		return true, &request.Made{Err: errAsksItself}
	}
	if s.visits.enter(roundTripVisit) { // it is asked after Close, too: a request not named by it passes
		defer s.visits.leave(roundTripVisit)
	}
	// By its context a call that Operation makes shows that it comes from here.
	work := inflight.NewNaming(req.Context(), asking)
	defer work.End()
	// A copy: the function may read a body by GetBody, and leaves the request as it is.
	shown := s.cfg.reader.Bodies.Shown(req)
	return s.cfg.Operation(shown.WithContext(work.Context(req.Context()))), nil
}

// operationAsked is a client in the role of asking its Operation.
type operationAsked declarations

// askNewKey calls Config.NewKey for req. For ErrNoKey it returns false and nil: the request is no operation. Otherwise made has the key, or another
// error of NewKey.
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
