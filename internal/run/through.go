package run

import (
	"context"
	"net/http"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/request"
)

// Requests through Transport other than operations: net/http's, as they are.

// pass sends a request other than an operation once, as Config.Transport does. out is req, or a copy of it sent in its place.
func (c *Client) pass(req, out *http.Request) (*http.Response, error) {
	c.notices.tellPassing(req)
	ctx := out.Context()
	if ctx.Value(inflight.RequestKey{}) != nil { // a request made by Transport inside of it is another request
		out = out.WithContext(inflight.WithoutKey(ctx))
	}
	if c.cfg.Authorize != nil {
		authorized, err := c.authorizePassing(out)
		if err != nil {
			closeBody(out)
			return nil, err
		}
		out = authorized
	}
	resp, err := c.cfg.Transport.RoundTrip(out)
	if resp != nil && resp.Request == out {
		resp.Request = req
	}
	return resp, err
}

// authorizePassing returns a request with the credentials of Config.Authorize, if it goes to an origin of this client, else as it is.
func (c *Client) authorizePassing(req *http.Request) (*http.Request, error) {
	if req.URL == nil || req.Header == nil || !c.cfg.originAllowed(request.Origin(req.URL)) {
		return req, nil
	}
	work := inflight.NewStream(req.Context(), c)
	defer work.End()
	out := req.Clone(work.Context(req.Context()))
	if err := (passThrough{Client: c, draining: context.Background(), cutting: context.Background()}).authorize(out, req); err != nil {
		return nil, newError(roundTripName, nothing(""), err, ErrNotSent)
	}
	return out.WithContext(req.Context()), nil
}
