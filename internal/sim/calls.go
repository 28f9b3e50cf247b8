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

// plannedCall returns the call of this round. Its way to name its key, its patience, and
// the soundness of its request are drawn for each.
func (w *world) plannedCall(o *order, l *life, r *rand.Rand) func() verdict {
	ctx, cancel := w.patience(o, r)
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

// secondCall returns another call for the same order, beside the first: another Do, joining
// the first or coming after it, or an Enqueue. The Enqueue has to outlive the first
// with any result of that. Some Enqueues come at the moment of the first's giving up its key.
func (w *world) secondCall(o *order, l *life, r *rand.Rand) func() verdict {
	ctx, cancel := w.patience(o, r)
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

// withKey names the key as a program without DoKey does.
func withKey(req *http.Request, key oncehttp.Key) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("Idempotency-Key", string(key))
	return req
}

// patience returns the context of a caller's wait: most wait for ever, and at the end all. Others have a
// deadline, leave at some time, or leave at the very moment of their whole answer,
// not classified yet.
func (w *world) patience(o *order, r *rand.Rand) (context.Context, context.CancelFunc) {
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

// failingReader is a body that breaks off.

// plainClient returns the client of code with no knowledge of this module. One in three
// follows redirects.
func plainClient(c *oncehttp.Client, o *order) *http.Client {
	if o.id%3 == 0 {
		return &http.Client{Transport: c.Transport()}
	}
	return c.StandardClient()
}

// bodyMax is Config.MaxRequestBytes.
const bodyMax = 4000

var errBody = errors.New("sim: the body cannot be read")

// spoil makes a request unfit for sending by any client. Without a key it stays the same
// request, as far as it can be read: nothing else identifies the repeat.
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

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errBody }

// onceBody is a request's body, readable only once.
type onceBody struct {
	io.Reader
	closed atomic.Bool
}

// Close notes its call. Every receiver of the body has to close it.
func (b *onceBody) Close() error {
	b.closed.Store(true)
	return nil
}
