package wiretest

import (
	"net/http"
	"testing"
)

// ByHost sends each request through the transport of its host.
type ByHost map[string]http.RoundTripper

// RoundTrip implements [http.RoundTripper]. It uses the transport of the request's host. The host must have one.
func (b ByHost) RoundTrip(req *http.Request) (*http.Response, error) {
	return b[req.URL.Hostname()].RoundTrip(req)
}

// Transport returns a transport of the test's own. Its connections end with the test.
func Transport(t *testing.T) *http.Transport {
	t.Helper()
	rt := &http.Transport{}
	t.Cleanup(rt.CloseIdleConnections)
	return rt
}

// Func is a function as a transport.
type Func func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper]. It calls f.
func (f Func) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Crashing lets a test look at the journal at the moment of each request: so a process that is killed then leaves it.
type Crashing struct {
	Through http.RoundTripper
	At      func(req *http.Request)      // before it is sent
	Lose    func(req *http.Request) bool // the request does not arrive
}

// RoundTrip implements [http.RoundTripper]. It calls At first. If Lose reports true, it returns ErrLost and sends nothing; to the client it looks as if the request
// may have arrived.
func (c *Crashing) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.At != nil {
		c.At(req)
	}
	if c.Lose != nil && c.Lose(req) {
		HandedOver(req)
		return nil, ErrLost
	}
	return c.Through.RoundTrip(req)
}
