package stream_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// stuck is a body whose Read takes an hour, whatever is done to it. With locked, Close waits for Read, as with the
// body of a request to a server of net/http.
type stuck struct {
	locked   bool
	reading  chan struct{} // holds one while Read runs
	finished atomic.Bool   // a Read came to its end
	closed   atomic.Int32
}

func newStuck(locked bool) *stuck { return &stuck{locked: locked, reading: make(chan struct{}, 1)} }

func (s *stuck) Read([]byte) (int, error) {
	s.reading <- struct{}{}
	defer func() { <-s.reading }()
	time.Sleep(time.Hour)
	s.finished.Store(true)
	return 0, io.ErrUnexpectedEOF
}

func (s *stuck) Close() error {
	if s.locked {
		s.reading <- struct{}{}
		<-s.reading
	}
	s.closed.Add(1)
	return nil
}

// TestBlockedBodyEndsWithTheContext: a call that waits for a body that does not come returns when its context ends,
// and closes the body, without a record and without a send. A Read that ignores Close ends alone.
func TestBlockedBodyEndsWithTheContext(t *testing.T) {
	t.Parallel()
	bodies := map[string]func() io.ReadCloser{
		"pipe":             func() io.ReadCloser { r, _ := io.Pipe(); return r },
		"stuck":            func() io.ReadCloser { return newStuck(false) },
		"stuck and locked": func() io.ReadCloser { return newStuck(true) },
	}
	for name, make := range bodies {
		for _, size := range []int64{-1, 10} {
			for _, call := range []string{"Do", "Enqueue"} {
				t.Run(name+" "+call, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { testBlockedBody(t, call, make(), size) })
				})
			}
		}
	}
}

func testBlockedBody(t *testing.T, call string, body io.ReadCloser, size int64) {
	t.Helper()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
	c, _ := clienttest.New(t, w, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	req := clienttest.Request(t, "POST", "https://api.example.com/payments", "").WithContext(ctx)
	req.Body, req.GetBody, req.ContentLength = body, nil, size
	start := time.Now()
	var err error
	if call == "Do" {
		_, err = c.DoKey(req, "k")
	} else {
		err = c.Enqueue(req, "k")
	}
	if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want no effect for the deadline", err)
	}
	if took := time.Since(start); took != 5*time.Second {
		t.Errorf("returned after %v, want 5s", took)
	}
	if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) || w.Count() != 0 {
		t.Errorf("%d sends, record: %v", w.Count(), err)
	}
	time.Sleep(2 * time.Hour)
	synctest.Wait()
	if s, ok := body.(*stuck); ok && (s.closed.Load() != 1 || !s.finished.Load()) {
		t.Errorf("closed %d times, read to its end %v; want one of each", s.closed.Load(), s.finished.Load())
	}
}

// panicking is a body whose Read panics.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("body") }
func (panicking) Close() error             { return nil }

// TestPanicOfABody goes on in the caller, who may recover, also where the context can end.
func TestPanicOfABody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req := clienttest.Request(t, "POST", "https://api.example.com/payments", "").WithContext(ctx)
		req.Body, req.GetBody, req.ContentLength = panicking{}, nil, 10
		defer func() {
			if recovered := recover(); recovered != "body" {
				t.Errorf("recovered %v, want the body's own panic", recovered)
			}
		}()
		_, _ = c.DoKey(req, "k")
	})
}

// TestBlockedGetBodyEndsWithTheContext: a body that GetBody hides is bounded by the context, too, also behind the types that
// http.NewRequest uses for bytes in memory.
func TestBlockedGetBodyEndsWithTheContext(t *testing.T) {
	t.Parallel()
	pipe, end := io.Pipe() // it never gives a byte
	t.Cleanup(func() { end.Close() })
	usedUp := func() io.ReadCloser {
		r := strings.NewReader("{}")
		_, _ = io.Copy(io.Discard, r)
		return io.NopCloser(r)
	}
	blocked := func() (io.ReadCloser, error) { return io.NopCloser(pipe), nil }
	for name, set := range map[string]func(*http.Request){
		"a used up string":              func(req *http.Request) { req.Body = usedUp() },
		"a used up string of 2 bytes":   func(req *http.Request) { req.Body, req.ContentLength = usedUp(), 2 },
		"an empty buffer":               func(req *http.Request) { req.Body = io.NopCloser(&bytes.Buffer{}) },
		"a buffered pipe":               func(req *http.Request) { req.Body = io.NopCloser(bufio.NewReader(pipe)) },
		"a string, and then the pipe":   func(req *http.Request) { req.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), pipe)) },
		"http.NoBody, and then 2 bytes": func(req *http.Request) { req.Body, req.ContentLength = http.NoBody, 2 },
		"nil, and then 2 bytes":         func(req *http.Request) { req.Body, req.ContentLength = nil, 2 },
		"a GetBody that blocks": func(req *http.Request) {
			req.Body, req.GetBody = usedUp(), func() (io.ReadCloser, error) { _, err := pipe.Read(make([]byte, 1)); return nil, err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			req := clienttest.Request(t, "POST", "https://api.example.com/payments", "").WithContext(ctx)
			req.GetBody, req.ContentLength = blocked, -1
			set(req)
			_, err := c.DoKey(req, "k")
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, context.DeadlineExceeded) || w.Count() != 0 {
				t.Errorf("%v after %d sends, want no effect for the deadline", err, w.Count())
			}
		})
	}
}
