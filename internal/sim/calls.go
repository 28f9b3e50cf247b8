package sim

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp"
)

// plannedCall returns the call of this round. The kind of the order says how it names its key: by DoKey, a header, the context, an Enqueue, or not at all. For
// each call it draws at random which of these, when the call's context ends, and whether the request is valid. l is the run of the program that is called.
func (w *world) plannedCall(o *order, l *life, r *rand.Rand) func() verdict {
	ctx, cancel := w.callContext(o, r)
	req := o.request(w).WithContext(ctx)
	if r.IntN(2) == 0 && ctx.Done() == nil {
		req = o.req // the very same value
	}
	key := o.key()
	c := o.client(l)
	if r.IntN(8) == 0 && !w.calm.Load() && o.kind != reuser {
		req = spoil(req, r, o.kind != keyless && o.kind != bare)
	}
	do := func() (*http.Response, error) { return c.DoKey(req, key) }
	switch {
	case o.kind == enqueued && r.IntN(3) > 0:
		return func() verdict { defer cancel(); defer w.closed(o, req); return w.enqueue(o, l, req, key) }
	case o.kind == plain:
		req = withKey(req, key)
		do = func() (*http.Response, error) { return plainClient(c, o).Do(req) }
	case o.named != "":
		key = o.named
		do = func() (*http.Response, error) { return c.DoKey(req, key) }
	case o.kind == bare, o.kind == keyless:
		key = ""
		do = func() (*http.Response, error) { return c.Do(req) }
		if o.kind == bare {
			do = func() (*http.Response, error) { return plainClient(c, o).Do(req) }
		}
	case r.IntN(3) == 0:
		req = withKey(req, key)
		do = func() (*http.Response, error) { return c.Do(req) }
	case r.IntN(3) == 0:
		req = req.WithContext(oncehttp.ContextWithKey(req.Context(), key))
		do = func() (*http.Response, error) { return c.Do(req) }
	}
	return func() verdict { defer cancel(); defer w.closed(o, req); return w.call(o, l, key, do) }
}

// secondCall returns a second call for the same order, beside the first. It is a Do or an Enqueue. It starts after a drawn delay; half of the Enqueues start
// when the first call frees the key. It has a request value of its own, and leaves that of the order (o.req) as it is. An Enqueue must be kept whatever the
// first call's result.
func (w *world) secondCall(o *order, l *life, r *rand.Rand) func() verdict {
	ctx, cancel := w.callContext(o, r)
	kept := o.req
	o.req = nil
	req := o.request(w).WithContext(ctx)
	o.req = kept
	key, enqueues, delay := o.key(), r.IntN(2) == 0, upTo(r, pick(r, 5*time.Millisecond, 500*time.Millisecond, 5*time.Second))
	var freed <-chan struct{}
	if enqueues && w.dice.chance(0.5, "when it is freed", o.id<<8|o.gen) {
		freed = w.model.freed(w.id(o, key))
		delay += 5 * time.Second
	}
	return func() verdict {
		defer cancel()
		defer w.closed(o, req)
		select {
		case <-freed:
		case <-time.After(delay):
		}
		if enqueues {
			return w.enqueue(o, l, req, key)
		}
		return w.call(o, l, key, func() (*http.Response, error) { return o.client(l).DoKey(req, key) })
	}
}

// withKey returns a copy of req with key in the header Idempotency-Key, as programs without DoKey send it.
func withKey(req *http.Request, key oncehttp.Key) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("Idempotency-Key", string(key))
	return req
}

// callContext returns the context of one call, and its cancel function. Once the faults have stopped (calm), and for half of the other calls, the context never
// ends. Otherwise it ends within 20 s, within 1 ms, or when the whole answer has been read (before the client classifies it).
func (w *world) callContext(o *order, r *rand.Rand) (context.Context, context.CancelFunc) {
	ctx := w.as(context.Background(), o.account)
	if w.calm.Load() {
		return ctx, func() {}
	}
	switch r.IntN(8) {
	case 0:
		return context.WithTimeout(ctx, upTo(r, 20*time.Second))
	case 1:
		return context.WithTimeout(ctx, upTo(r, time.Millisecond)) // before the answer, often
	case 3:
		ctx, cancel := context.WithCancel(ctx)
		w.model.leaves(o, cancel)
		return ctx, cancel
	case 2:
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(upTo(r, 10*time.Second), cancel)
		return ctx, cancel
	default:
		return ctx, func() {}
	}
}

// plainClient returns the client for code that does not know this module. For one in three orders it follows redirects.
func plainClient(c *oncehttp.Client, o *order) *http.Client {
	if o.id%3 == 0 {
		return &http.Client{Transport: c.Transport()}
	}
	return c.StandardClient()
}

// bodyMax is Config.MaxRequestBytes.
const bodyMax = 4000

var errBody = errors.New("sim: the body cannot be read")

// spoil returns an invalid copy of req, not to be sent by any client: with an ended context, a body that is unreadable or too large, a header or trailer that
// no record keeps, another scheme, or two keys. keyed is false if the request has no key: then the URL and the key header stay, since the request alone
// identifies the repeat.
func spoil(req *http.Request, r *rand.Rand, keyed bool) *http.Request {
	ctx := req.Context()
	bad := req.Clone(ctx)
	switch r.IntN(7) {
	case 0:
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return bad.WithContext(ended)
	case 1:
		bad.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), failingReader{}))
		bad.GetBody = nil
	case 2:
		bad.Body, bad.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", bodyMax+1))), -1
		bad.GetBody = nil
	case 3:
		bad.Header.Set("X-Note", "two\nlines")
	case 4:
		bad.Trailer = http.Header{"X-Sum": {"1"}}
	case 5:
		if !keyed {
			break
		}
		bad.URL.Scheme = "ftp"
	case 6:
		if !keyed {
			break
		}
		bad.Header.Set("Idempotency-Key", "another")
		bad.Header.Add("Idempotency-Key", "and-another")
	}
	return bad
}

// failingReader is a body that breaks off.
type failingReader struct{}

// Read always fails: it is the body of a request that its program cannot read.
func (failingReader) Read([]byte) (int, error) { return 0, errBody }

// onceBody is a request's body, readable only once.
type onceBody struct {
	io.Reader
	closed atomic.Bool
}

// Close notes that it was called. The simulation checks that whoever gets the body closes it.
func (b *onceBody) Close() error {
	b.closed.Store(true)
	return nil
}
