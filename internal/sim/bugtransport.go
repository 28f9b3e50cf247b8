package sim

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// faultyTransport is a transport with one bug, between the client and the network.
type faultyTransport struct {
	http.RoundTripper
	bug Bug
	n   atomic.Int64
}

// transport returns the client's transport with this deliberate bug, if it is one of the transport; else rt.
func (b Bug) transport(rt http.RoundTripper) http.RoundTripper {
	switch b {
	case BugKeyPerAttempt, BugNewKeyAfter422, BugHeadIsEnough, BugDropOnCancel:
		return &faultyTransport{RoundTripper: rt, bug: b}
	}
	return rt
}

// RoundTrip implements [http.RoundTripper]. It sends the request with the fault of the bug: another key, a second send, or a faulty body of the answer.
func (t *faultyTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body) // it is in memory
	}
	send := func(key string) (*http.Response, error) {
		again := req.Clone(req.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		again.Header.Set("Idempotency-Key", key)
		return t.RoundTripper.RoundTrip(again)
	}
	key := keyOf(req.Header)
	if n := t.n.Add(1); t.bug == BugKeyPerAttempt {
		key += "-" + strconv.FormatInt(n, 10)
	}
	resp, err := send(key)
	switch {
	case err != nil:
	case t.bug == BugNewKeyAfter422 && (resp.StatusCode == 422 || resp.StatusCode == 400):
		_ = resp.Body.Close() // it is asked again
		return send(key + "-new")
	case t.bug == BugHeadIsEnough, t.bug == BugDropOnCancel:
		resp.Body = &faultyBody{resp.Body, t.bug, req.Context()}
		if t.bug == BugHeadIsEnough {
			// Else the length would show that the body was cut.
			resp.ContentLength = -1
		}
	}
	return resp, err
}

// faultyBody is an answer's body with one bug.
type faultyBody struct {
	io.ReadCloser
	bug Bug
	ctx context.Context
}

// Read implements io.Reader. With one deliberate bug it takes an error for the end of the body. With the other it loses a whole body if the caller
// has just left.
func (b *faultyBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.bug == BugHeadIsEnough && err != nil {
		return n, io.EOF
	}
	if b.bug == BugDropOnCancel && err == io.EOF {
		time.Sleep(time.Microsecond) // a caller who leaves at this moment has left
		if b.ctx.Err() != nil {
			return 0, b.ctx.Err()
		}
	}
	return n, err
}
