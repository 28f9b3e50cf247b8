package request

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"
)

// readWithin runs read, which reads req's body, and returns when it does or when the request's context ends. In the
// latter case the error's trouble is Ended, and read goes on by itself until the body lets it go: closeBody then
// closes the body beside it. A panic of read goes on in the caller.
func readWithin(req *http.Request, read func() ([]byte, error)) ([]byte, error) {
	ctx := req.Context()
	if ctx.Err() != nil {
		return nil, &Error{Ended, context.Cause(ctx)}
	}
	type result struct {
		body     []byte
		err      error
		panicked any
		returned bool
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if !r.returned {
				r.panicked = recover()
			}
			done <- r
		}()
		r.body, r.err = read()
		r.returned = true
	}()
	select {
	case r := <-done:
		switch {
		case r.panicked != nil:
			panic(r.panicked)
		case !r.returned:
			return nil, errors.New("the body called runtime.Goexit")
		}
		return r.body, r.err
	case <-ctx.Done():
		return nil, &Error{Ended, stillReading{context.Cause(ctx)}}
	}
}

// mayBlock reports whether reading req's body may have to be given up because the context ends.
func mayBlock(req *http.Request) bool { return req.Context().Done() != nil && !inMemory(req.Body) }

// inMemory reports whether a body is one that http.NewRequest made of bytes or a string, with some of them left: it never
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

// closeBody closes req's body after reading it gave err, or nil. A body that may still be read closes in its own time,
// since Close may wait for Read; so does one whose Close outlasts the request's context.
func closeBody(req *http.Request, err error) {
	switch {
	case req.Body == nil:
	case err != nil && isStillRead(err):
		go req.Body.Close()
	case req.Context().Done() == nil || req.Body == http.NoBody || reflect.TypeOf(req.Body) == typeInMemory:
		_ = req.Body.Close()
	default:
		if req.Context().Err() != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), closeWithin)
			defer cancel()
			req = req.WithContext(ctx)
		}
		_, _ = readWithin(req, func() ([]byte, error) { return nil, req.Body.Close() })
	}
}

// closeWithin is how long a call whose context has ended waits for the Close of its body.
const closeWithin = time.Second

// isStillRead reports whether err is a body that was given up while it was being read.
func isStillRead(err error) bool {
	var reading stillReading
	return errors.As(err, &reading)
}

// stillReading is why a body was given up while it was being read.
type stillReading struct{ cause error }

func (s stillReading) Error() string { return s.cause.Error() }
func (s stillReading) Unwrap() error { return s.cause }
