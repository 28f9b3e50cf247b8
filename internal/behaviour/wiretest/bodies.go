package wiretest

import (
	"io"
	"net/http"
	"sync/atomic"
)

// OpenBodies is a wire that counts the bodies of its answers that nobody has closed.
type OpenBodies struct {
	Wire
	Open atomic.Int32 // bodies
}

// RoundTrip implements [http.RoundTripper]. It counts the body of the answer as open until its Close.
func (o *OpenBodies) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.Wire.RoundTrip(req)
	if err == nil {
		o.Open.Add(1)
		resp.Body = &openBody{Reader: resp.Body, of: o}
	}
	return resp, err
}

// openBody is a body of OpenBodies.
type openBody struct {
	io.Reader
	of     *OpenBodies
	closed atomic.Bool
}

// Close closes the body, once.
func (b *openBody) Close() error {
	if !b.closed.Swap(true) {
		b.of.Open.Add(-1)
	}
	return nil
}

// Counted is a body that counts its Closes.
type Counted struct {
	io.Reader
	Closes *atomic.Int32
}

// Close implements [io.Closer]. It only counts the call.
func (c *Counted) Close() error { c.Closes.Add(1); return nil }

// Zeros is a body of zeros, without an end.
type Zeros struct{}

// Read implements [io.Reader]. It fills p with zeros, and never ends.
func (Zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
