package oncehttp

import (
	"net/http"
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
// It is not quite what net/http asks of a RoundTripper: it waits and sends again.
func (c *Client) Transport() http.RoundTripper { return roundTripper{c} }

// StandardClient is an *http.Client over Transport, for generated SDKs. It
// follows no redirects. An SDK that makes a fresh key for each call (stripe-go
// does, without SetIdempotencyKey) makes an operation of each: a call that is made
// again after an error is a second payment, and nothing here can tell. Give it a
// key of the business, or leave the key out altogether. Switch the SDK's own retries off (stripe-go:
// MaxNetworkRetries 0): two loops multiply each other's attempts.
//
// Set no Timeout on it: it would span all attempts and waits, and cut the last.
func (c *Client) StandardClient() *http.Client {
	return &http.Client{
		Transport:     c.Transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type roundTripper struct{ c *Client }

func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.c.do("round trip", req, keySource{}, true)
}
