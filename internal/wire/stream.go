package wire

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// Stream makes one send of a request. Its body and the answer's body are not kept but streamed. Stream waits for the
// answer's headers for at most timeout, counted from the moment when the request's body is sent. The answer's body
// has no time limit. prepare returns the request; if it returns an error too, the request's body is closed.
//
// Until Stream returns, the end of cut ends the send, too, with the cause of cut.
//
// Beside an error, unsent is true if it is proved that nothing was sent, and fatal if another send would fail alike.
func Stream(ctx, cut context.Context, transport http.RoundTripper, timeout time.Duration, prepare func(context.Context) (*http.Request, error)) (resp *http.Response, unsent, fatal bool, err error) {
	x := begin(ctx, timeout, time.Time{})
	defer context.AfterFunc(cut, func() { x.cancel(sanitize.Cause(cut)) })()
	req, err := prepare(x.ctx)
	if err == nil {
		err = sanitize.Cause(x.ctx)
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
	resp, err = x.roundTrip(transport, req.WithContext(x.traced(false))) // false: a second send by the transport itself is not looked for
	upload.answered()
	if err != nil {
		err = x.reason(err)
		x.end()
		return nil, x.provedUnsent(), untrusted(err), err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols { // the body of a 101 is a connection
		resp.Body = &flowing{ReadCloser: resp.Body, x: x}
	}
	return resp, false, false, nil
}

// upload starts the clock when a streamed request is sent, unless its answer came first: a server may answer while it
// still reads.
type upload struct {
	x    *exchange
	mu   sync.Mutex
	over bool
}

// wrote is called by net/http when the request was written, or writing it failed. The time limit for the answer begins, unless the transport has returned
// before (u.over): some answers come before the whole body is written.
func (u *upload) wrote(httptrace.WroteRequestInfo) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.over {
		u.x.arm()
	}
}

// answered is called when the transport has returned. It removes the time limit.
func (u *upload) answered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	u.x.timer.Stop()
}

// flowing is an answer's body. Its Close releases its exchange.
type flowing struct {
	io.ReadCloser
	x *exchange
}

// Close closes the body, and ends its exchange.
func (f *flowing) Close() error {
	defer f.x.end()
	return f.ReadCloser.Close()
}
