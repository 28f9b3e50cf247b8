package run

import (
	"errors"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/alike"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/owner"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the reading of a caller's request.

// givenBy returns the facts about an operation that its call gives beside the request itself. plain: the caller sees plain HTTP
// (Transport); now is the time of the call.
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

// readRequest reads the caller's request, with its body, and closes the body in every case. It never changes the request. plain: the caller sees plain HTTP. op
// is set also with an error, and then has only the names given by the call (named). The caller of readRequest sets took.
func readRequest(c *Client, req *http.Request, key keySource, plain bool) (*preparedRequest, error) {
	c.visits.begin(bodyGuest)
	defer c.visits.end(bodyGuest)
	s, named, err := c.cfg.reader.Read(req, c.cfg.profiles().at(req.URL), givenBy(req, key, plain, c.engine.now()))
	if err != nil {
		return &preparedRequest{named: named}, err
	}
	// After the reading: only a request that can be an operation is warned about.
	c.notices.tellCoverage(req.Context(), s)
	// With it another client tells whether it reads answers alike.
	s.Record.Facts = c.cfg.profiles().facts(s.Profile)
	c.cfg.keeps(&s.Record, intent.KeysPlace{}) // its place is chosen later
	s.Record.KeepRequest = requestKeeping(&c.cfg, s.Profile)
	return &preparedRequest{rec: &s.Record, prof: s.Profile, credentials: s.Credentials, target: &s.URL, read: s, named: named}, nil
}

// keyInFlight returns the key for the error "another call with this key is at work"; "" if the caller must not learn it, since the key was
// made and is another call's (intent.CallKey).
func (op *preparedRequest) keyInFlight() string {
	return namedTo(intent.CallKey{Keyless: op.named.Keyless}, intent.SeesRunning, op.rec.Key)
}

// keyOnLeaving returns the key for the error of a caller that leaves a call before its result, to go on with later; "" if it must not learn
// the key. joined: the call is another caller's, which this one has joined.
func (op *preparedRequest) keyOnLeaving(joined bool) string {
	if joined {
		return op.keyInFlight()
	}
	return namedTo(intent.CallKey{Keyless: op.named.Keyless}, intent.SeesOpen, op.rec.Key)
}

// journaled reports whether a request is an operation. Use same instead of req afterwards: its body may have been read to find a key. A misspelled method
// counts as an operation, so that read refuses it. The key is looked for as by a Do (givenBy).
func journaled(cfg *Config, req *http.Request) (same *http.Request, journaled bool) {
	method := request.Method(req)
	if request.Safe(method) {
		return req, false
	}
	if cfg.journals(method) || request.CheckMethod(method) != nil {
		return req, true
	}
	carries, same := cfg.reader.CarriesKey(req, cfg.profiles().at(req.URL), givenBy(req, keySource{}, false, time.Time{}))
	return same, carries
}

// requestTrouble returns the error that programs match, such as ErrConfig, for a request that could not be read as an operation because of err; nil if there is
// none for it.
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

// sanitized removes URLs and quotes from the text of a foreign error, since they may hold secrets. errors.Is still works.
func sanitized(err error) error { return sanitize.Error(err) }

// closeBody closes the body of a request that is not sent, if it has one.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// elsewhere reports whether the operation's record may belong under another account than that of rec, found for its key. It may if rec is of another
// scope: a header of its request selects another account. It may, too, if the journal was not searched yet, and the requests may differ so. Then the
// caller chooses the account anew, placesMax times at most.
func (op *preparedRequest) elsewhere(rec *persist.Record) bool {
	switch {
	case op.places >= placesMax:
		return false
	case op.read.OtherScope(rec):
		return true
	}
	return op.places == 0 && len(rec.Scopes)+len(op.named.Scopes) > 0 && op.read.Compare(rec) != request.SameRequest
}

// known returns the facts about an existing record that a call knows by its own request: whether it is the same request, and the same caller's. Of an
// unreadable record it knows little.
func (op *preparedRequest) known(rec *persist.Record) (c operation.Call) {
	if c.Unreadable = rec.Sealed() != nil; c.Unreadable {
		return c
	}
	c.Elsewhere, c.Strange = op.elsewhere(rec), op.strange(rec)
	switch op.read.Compare(rec) {
	case request.SameRequest:
		c.Request = operation.Same
	case request.CannotTell:
		c.Request = operation.Incomparable
	default:
		c.Request = operation.Other
	}
	return c
}

// lookalike returns the operation in the form for a search for others of the same request (package alike).
func (op *preparedRequest) lookalike() alike.Call {
	return alike.Call{Record: op.rec, Named: &op.named, Read: op.read}
}

// strange reports whether the operation of rec may be another caller's: its credentials differ from this call's or, if they cannot be
// compared, its key was made for one call.
func (op *preparedRequest) strange(rec *persist.Record) bool {
	return owner.Strange(&op.named.Owner, rec, op.secret)
}
