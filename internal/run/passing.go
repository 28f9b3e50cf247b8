package run

import (
	"net/http"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
)

// This file holds the check of a request of Do without a key before it passes through a client as no operation. The Config.Methods of
// another client of the journal may name it, and this other client may have begun it.

// passes returns an error if a request, no operation for this client, may be one standing in the journal under a generated key, unresolved
// or unreported. Sent, it might take effect for the second time. A request without an effect passes. Use same instead of req afterwards:
// its body may have been read. Beside an error it is closed.
func (c *Client) passes(req *http.Request) (same *http.Request, err error) {
	if request.Safe(request.Method(req)) {
		return req, nil
	}
	const name = "do"
	p, given := c.cfg.profileFor(req.URL), givenBy(req, keySource{}, false, c.engine.now())
	ctx := inflight.WithoutKey(req.Context())
	named := c.cfg.reader.Named(req, p, given)
	switch may, err := c.engine.alike.MayStand(ctx, named); {
	case err != nil:
		closeBody(req)
		return nil, newError(name, unclearTo(unnamed, operation.HasNotLooked, firstKey(&named)), err)
	case !may:
		return req, nil
	}
	s, named, err := c.cfg.reader.ReadUnkeyed(req, p, given)
	if err != nil {
		return nil, c.engine.unbegun.errorBeforeRead(ctx, name, named, err, requestTrouble(err))
	}
	op := &preparedRequest{rec: &s.Record, prof: s.Profile, credentials: s.Credentials, target: &s.URL, read: s, named: named}
	if err := c.engine.admission.checkUnresolved(ctx, name, op); err != nil {
		return nil, err
	}
	return request.WithBody(req, s.Record.Body), nil
}
