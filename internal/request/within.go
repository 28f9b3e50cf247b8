package request

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// readWithin runs read to read req's body. It returns when read returns or when the request's context ends. In the latter case
// the error's trouble is Ended, and read goes on by itself until the body lets it go. close then closes the body in another
// goroutine. A panic of read goes on in the caller; once the caller has left, Crashed is told.
func (b *Bodies) readWithin(req *http.Request, read func() ([]byte, error)) ([]byte, error) {
	ctx := req.Context()
	if ctx.Err() != nil {
		return nil, &Error{Ended, sanitize.Cause(ctx)}
	}
	return b.runWithin(ctx, read)
}

// runWithin calls read on a goroutine of its own and waits for it, or until ctx ends: a body may block for ever. A panic of read goes on here if the
// caller still waits, and else is reported as a crash.
func (b *Bodies) runWithin(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		body     []byte
		err      error
		panicked any
		returned bool
	}
	done := make(chan result, 1)
	var first atomic.Bool // set by the first of two ends: read's own, and the caller's
	go func() {
		var res result
		defer func() {
			var stack []byte
			if !res.returned {
				stack = debug.Stack()
				res.panicked = recover()
			}
			if !first.Swap(true) {
				done <- res
			} else if !res.returned {
				b.crashed(ctx, res.panicked, stack)
			}
		}()
		res.body, res.err = read()
		res.returned = true
	}()
	var res result
	select {
	case res = <-done:
	case <-ctx.Done():
		if !first.Swap(true) {
			return nil, &Error{Ended, stillReading{sanitize.Cause(ctx)}}
		}
		res = <-done
	}
	switch {
	case res.panicked != nil:
		panic(res.panicked)
	case !res.returned:
		return nil, errors.New("the body called runtime.Goexit")
	}
	return res.body, res.err
}

// crashed calls Crashed, if it is set, with a panic of a function that no caller waits for.
func (b *Bodies) crashed(ctx context.Context, value any, stack []byte) {
	if b.Crashed != nil {
		b.Crashed(ctx, value, stack)
	}
}

// mayBlock reports whether reading req's body may have to be given up because the context ends.
func mayBlock(req *http.Request) bool { return req.Context().Done() != nil && !inMemory(req.Body) }

// inMemory reports whether a body was made by http.NewRequest of bytes or a string, with some of them left. Such a body never
// blocks, and GetBody is not asked after it.
func inMemory(body io.ReadCloser) bool {
	if reflect.TypeOf(body) != typeInMemory { // also the type of other readers with io.WriterTo
		return false
	}
	switch r := reflect.ValueOf(body).Field(0).Interface().(type) {
	case *bytes.Reader:
		return r.Len() > 0
	case *strings.Reader:
		return r.Len() > 0
	case *bytes.Buffer:
		return r.Len() > 0
	}
	return false
}

var typeInMemory = reflect.TypeOf(bytesBody(nil))

// close closes the body of req after a read of it. err is the error of the read, or nil. If the body may still be read, or its Close takes longer
// than the request's context lasts, it goes on in a goroutine of its own, since Close may wait for Read. After the end of the context Close has closeWithin.
// A body in memory cannot block.
func (b *Bodies) close(req *http.Request, err error) {
	switch {
	case req.Body == nil:
	case err != nil && isStillRead(err):
		go b.closeUnheard(req)
	case req.Context().Done() == nil || req.Body == http.NoBody || reflect.TypeOf(req.Body) == typeInMemory:
		_ = req.Body.Close()
	default:
		ctx := req.Context()
		if ctx.Err() != nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
			defer cancel()
		}
		_, _ = b.runWithin(ctx, func() ([]byte, error) { return nil, req.Body.Close() })
	}
}

// closeUnheard closes a body after its caller has left. A panic is reported as a crash.
func (b *Bodies) closeUnheard(req *http.Request) {
	returned := false
	defer func() {
		if returned {
			return
		}
		stack := debug.Stack()
		b.crashed(req.Context(), recover(), stack)
	}()
	_ = req.Body.Close()
	returned = true
}

// closeWithin bounds a call's wait for the Close of its body if the call's context has ended.
const closeWithin = time.Second

// isStillRead reports whether err means a body given up while it was being read.
func isStillRead(err error) bool {
	var reading stillReading
	return errors.As(err, &reading)
}

// stillReading is the cause for giving up a body while it was being read.
type stillReading struct{ cause error }

// Error returns the text of the cause.
func (s stillReading) Error() string { return s.cause.Error() }

// Unwrap returns the cause: the error for which the wait for the body ended.
func (s stillReading) Unwrap() error { return s.cause }
