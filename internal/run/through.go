package run

import (
	"context"
	"net/http"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/request"
)

// Requests through Transport other than operations: net/http's, as they are.

// pass sends a request other than an operation once, as Config.Transport does. out is req, or a copy of it sent in its place.
func (t RoundTripper) pass(req, out *http.Request) (*http.Response, error) {
	t.c.notices.tellPassing(req)
	ctx := out.Context()
	if ctx.Value(inflight.RequestKey{}) != nil { // a request made by Transport inside of it is another request
		out = out.WithContext(inflight.WithoutKey(ctx))
	}
	if t.c.cfg.Authorize != nil {
		authorized, err := t.authorizePassing(out)
		if err != nil {
			closeBody(out)
			return nil, err
		}
		out = authorized
	}
	resp, err := t.c.cfg.Transport.RoundTrip(out)
	if resp != nil && resp.Request == out {
		// net/http and its wrappers compare the request of a response with their own.
		resp.Request = req
	}
	return resp, err
}

// authorizePassing returns a request with the credentials of Config.Authorize, if it goes to an origin of this client, else as it is.
func (t RoundTripper) authorizePassing(req *http.Request) (*http.Request, error) {
	if req.URL == nil || req.Header == nil || !t.c.cfg.gate().allows(request.Origin(req.URL)) {
		return req, nil
	}
	// By its context a call that Authorize makes shows that the request waits for it.
	work := inflight.NewStream(req.Context(), t.c)
	defer work.End()
	out := req.Clone(work.Context(req.Context()))
	// Only its authorize is called, for which the ends of the client do not matter.
	if err := (passThrough{Client: t.c, draining: context.Background(), cutting: context.Background()}).authorize(out, req); err != nil {
		return nil, newError(roundTripName, nothing(""), err, ErrNotSent)
	}
	return out.WithContext(req.Context()), nil
}
