package run

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Request.Cancel, a deprecated field of net/http. An http.Client with a Timeout sets it, too.

// errCanceled is the cause of a call ended by its Request.Cancel, in net/http's words.
var errCanceled = errors.New("net/http: request canceled")

// untilCanceled runs send with a context that also ends when req.Cancel is closed; req.Cancel is not nil. The body of the answer ends with it, too, until it
// was read to its end or closed. A kept body is in memory, and needs no context.
func untilCanceled(req *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	//lint:ignore SA1019 callers set it
	go awaitCancel(ctx, cancel, req.Cancel)
	ended := false
	defer func() {
		if !ended { // also after a panic
			cancel(nil)
		}
	}()
	resp, err := send(req.WithContext(ctx))
	if resp == nil {
		return nil, err
	}
	// The caller's own context, and the Result in it: the context made above ends with the body.
	resp.Request = resp.Request.WithContext(&resultContext{req.Context(), ResultOf(resp)})
	if _, kept := resp.Body.(*keptBody); !kept {
		ended = true
		resp.Body = &cancelableBody{resp.Body, func() { cancel(nil) }}
	}
	return resp, err
}

// awaitCancel waits until canceled is closed, and then ends the context by cancel; if ctx ends before, it does nothing. If canceled is closed after
// the deadline of ctx, the cause is the deadline: an http.Client closes the channel then.
func awaitCancel(ctx context.Context, cancel context.CancelCauseFunc, canceled <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-canceled:
		if deadline, has := ctx.Deadline(); has && !time.Now().Before(deadline) {
			cancel(context.DeadlineExceeded)
			return
		}
		cancel(errCanceled)
	}
}

// cancelableBody is a body with a context to release at its end.
type cancelableBody struct {
	io.ReadCloser        // of the response
	release       func() // ends the wait for the Cancel of the request
}

// Read reads, and releases the context at the end.
func (b *cancelableBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.release()
	}
	return n, err
}

// Close closes the body and releases the context.
func (b *cancelableBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
