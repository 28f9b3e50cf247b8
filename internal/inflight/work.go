package inflight

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrCircle is the error of a wait for work that waits for the one who would wait.
var ErrCircle = errors.New("it is waited for by the function that this call is made in")

// ErrGuest is the error of a wait that was given up: the work stays in a function of the user.
var ErrGuest = errors.New("it is in a function of the Config, or waits for its turn behind one, and that has not returned in time")

// Work is under way, and calls functions of the user: a call, a pass over what is due, or one Authorize. The contexts of those
// functions carry it, so that a call that is made in one of them is known to be waited for by the work. The zero value has no
// parent. It is safe for concurrent use.
//
// Several tables may have work that waits for each other, so that there is no lock over all of it: whoever would wait says so
// first and looks for a circle then. Of those that would close one together at least one sees it.
type Work struct {
	parent *Work  // waits for this
	client any    // whose functions it calls
	pass   bool   // it goes through what is due
	naming bool   // it makes a key
	origin string // that it authorizes a request for; else ""

	mu      sync.Mutex
	over    bool
	waiters []*Work   // beside the parent; one may be in it several times
	since   time.Time // since when it is in a function of the user; zero: it is not
}

// NewPass returns the work of a client that goes through what is due, begun with this context.
func NewPass(ctx context.Context, client any) *Work {
	return &Work{parent: From(ctx), client: client, pass: true}
}

// NewStream returns the work of a client that makes a request that is no operation, begun with this context.
func NewStream(ctx context.Context, client any) *Work {
	return &Work{parent: From(ctx), client: client}
}

// NewNaming returns the work of a client that makes the key of a request, begun with this context.
func NewNaming(ctx context.Context, client any) *Work {
	return &Work{parent: From(ctx), client: client, naming: true}
}

// Authorizing returns the work of one Authorize of a request to the origin.
func (w *Work) Authorizing(origin string) *Work {
	return &Work{parent: w, client: w.client, origin: origin}
}

// End says that the work is over. Its contexts carry nothing any more, those of an Authorize the work around it.
func (w *Work) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// ended reports whether the work is over.
func (w *Work) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// Visit says that the work is in a function of the user from now on, until Return.
func (w *Work) Visit() {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = now
}

// Return says that the function has returned.
func (w *Work) Return() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Time{}
}

// patient returns how much longer a wait goes on that lets the work be in one function for so long; zero or less: no longer.
func (w *Work) patient(patience time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		return patience
	}
	return patience - time.Since(w.since)
}

// wait waits until over is closed. Errors: the cause of ctx, if that ends before; ErrGuest, if the work stays in one function for
// longer than patience. Zero: there is no such bound.
func (w *Work) wait(ctx context.Context, patience time.Duration, over <-chan struct{}) error {
	var looks <-chan time.Time
	var timer *time.Timer
	if patience > 0 {
		select {
		case <-over:
			return nil
		default:
		}
		timer = time.NewTimer(patience)
		defer timer.Stop()
		looks = timer.C
	}
	for {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-looks:
			more := w.patient(patience)
			if more <= 0 {
				return ErrGuest
			}
			timer.Reset(more)
		}
	}
}

// Passes reports whether the work, or an ancestor, goes through what is due.
func (w *Work) Passes() bool {
	for ; w != nil; w = w.parent {
		if w.pass && !w.ended() {
			return true
		}
	}
	return false
}

// Names reports whether the work, or an ancestor, makes a key for the client.
func (w *Work) Names(client any) bool {
	for ; w != nil; w = w.parent {
		if w.naming && w.client == client && !w.ended() {
			return true
		}
	}
	return false
}

// Authorizes reports whether the work, or an ancestor, is an Authorize of the work's client, of a request to the origin.
func (w *Work) Authorizes(origin string) bool {
	for by := w; by != nil; by = by.parent {
		if by.origin == origin && origin != "" && by.client == w.client && !by.ended() {
			return true
		}
	}
	return false
}

// await says that by waits for the work from now on, until leave. It returns ErrCircle, and by does not wait, if the work waits
// for by. Without by it does nothing.
func (w *Work) await(by *Work) error {
	if by == nil {
		return nil
	}
	w.mu.Lock()
	w.waiters = append(w.waiters, by)
	w.mu.Unlock()
	if by.awaitedBy(w) {
		w.leave(by)
		return ErrCircle
	}
	return nil
}

// leave says that by waits no more.
func (w *Work) leave(by *Work) {
	if by == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiters, by); i >= 0 {
		w.waiters = slices.Delete(w.waiters, i, i+1)
	}
}

// awaitedBy reports whether other is the work, or waits for it, at first or at second hand.
func (w *Work) awaitedBy(other *Work) bool {
	seen := []*Work{w}
	for i := 0; i < len(seen); i++ {
		if seen[i] == other {
			return true
		}
		for _, by := range seen[i].awaiting() {
			if !slices.Contains(seen, by) {
				seen = append(seen, by)
			}
		}
	}
	return false
}

// awaiting returns those who wait for the work.
func (w *Work) awaiting() []*Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.waiters)
	if w.parent != nil {
		all = append(all, w.parent)
	}
	return all
}

// RequestKey is the key of a context's value that names the one request which is made with the context. A context that carries
// work has no such value of the contexts around it.
type RequestKey struct{}

// hidden reports whether a key is that of a value which contexts for functions of the user do not have.
func hidden(key any) bool { return key == RequestKey{} }

// WithoutKey returns ctx without a RequestKey.
func WithoutKey(ctx context.Context) context.Context {
	if ctx.Value(RequestKey{}) == nil {
		return ctx
	}
	return keyless{ctx}
}

// keyless is a context without a RequestKey.
type keyless struct{ context.Context }

// Value returns what the context around it has.
func (k keyless) Value(key any) any {
	if hidden(key) {
		return nil
	}
	return k.Context.Value(key)
}

// workKey is the key of work in a context.
type workKey struct{}

// From returns the work that a context carries; nil if there is none, or it is over.
func From(ctx context.Context) *Work {
	w, _ := ctx.Value(workKey{}).(*Work)
	for w != nil && w.ended() {
		if w.origin == "" {
			return nil
		}
		w = w.parent
	}
	return w
}

// Context returns ctx for a function of the user: it carries the work, and no RequestKey.
func (w *Work) Context(ctx context.Context) context.Context { return &guest{ctx, w} }

// guest is a context that carries work.
type guest struct {
	context.Context
	work *Work
}

// Value returns the work, and what the context around it has.
func (g *guest) Value(key any) any {
	switch {
	case key == workKey{}:
		return g.work
	case hidden(key):
		return nil
	}
	return g.Context.Value(key)
}
