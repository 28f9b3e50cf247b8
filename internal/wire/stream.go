package wire

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// Stream makes one send of a request that flows: its body is the caller's, and so is the answer's. The answer's
// headers are waited for as long as timeout, from the moment at which the request's body is out; what flows after
// them is not cut. prepare returns the request; one that it returns beside an error is closed.
//
// unsent says of an error that it is proved that nothing was sent, fatal that another send would fail alike.
func Stream(ctx context.Context, transport http.RoundTripper, timeout time.Duration, prepare func(context.Context) (*http.Request, error)) (resp *http.Response, unsent, fatal bool, err error) {
	x := begin(ctx, timeout, time.Time{})
	req, err := prepare(x.ctx)
	if err == nil {
		err = context.Cause(x.ctx)
	}
	if err != nil {
		x.end()
		if req != nil && req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, true, false, err
	}
	upload := &upload{x: x}
	if req.Body == nil || req.Body == http.NoBody {
		x.arm()
	} else {
		x.timer.Stop()
		trace := &httptrace.ClientTrace{WroteRequest: upload.wrote}
		x.ctx = httptrace.WithClientTrace(x.ctx, trace)
	}
	resp, err = x.roundTrip(transport, req.WithContext(x.traced()))
	upload.answered()
	if err != nil {
		err = x.reason(err)
		x.end()
		return nil, x.provedUnsent(), untrusted(err), err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols { // whose body is a connection
		resp.Body = &flowing{ReadCloser: resp.Body, x: x}
	}
	return resp, false, false, nil
}

// upload starts the clock when a streamed request is out, unless its answer was there first, as a server's may be
// that answers while it reads.
type upload struct {
	x    *exchange
	mu   sync.Mutex
	over bool
}

// wrote is told by httptrace that the request is out, or failed to go out.
func (u *upload) wrote(httptrace.WroteRequestInfo) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.over {
		u.x.arm()
	}
}

// answered stops the clock for good: RoundTrip returned.
func (u *upload) answered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	u.x.timer.Stop()
}

// flowing is an answer's body that releases its exchange when it is closed.
type flowing struct {
	io.ReadCloser
	x *exchange
}

// Close closes the body and ends its exchange.
func (f *flowing) Close() error {
	defer f.x.end()
	return f.ReadCloser.Close()
}
