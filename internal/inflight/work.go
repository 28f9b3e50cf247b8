package inflight

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// ErrCircle is the error of a wait for work, if the work itself waits for the one about to wait.
var ErrCircle = errors.New("it is waited for by the function that this call is made in")

// ErrGuest is the error of a wait given up because the work stays in a function of the user.
var ErrGuest = errors.New("it is in a function of the Config, or waits for its turn behind one, and that has not returned in time")

// Work is under way, and calls functions of the user: a call, a pass over the due operations, or one Authorize. The contexts
// of those functions carry it: a call made in one of them is then known to be waited for by the work. The zero value has no
// parent. It is safe for concurrent use.
//
// Several tables may have work that waits for each other, so there is no lock over all of it. Each waiter first notes its
// wait, and then looks for a circle. Of those closing one together at least one sees it.
type Work struct {
	parent *Work  // waits for this
	client any    // the owner of the functions that it calls
	pass   bool   // it goes through the due operations
	naming bool   // it makes a key
	origin string // origin of the request to be authorized; else ""

	mu      sync.Mutex
	over    bool
	waiters []*Work   // beside the parent; one may be in it several times
	since   time.Time // start of its stay in a function of the user; zero: it is in none
}

// NewPass returns a piece of work for a client's pass over the due operations: calls made in its functions of the program are known to be waited for
// by it. ctx is the pass's context.
func NewPass(ctx context.Context, client any) *Work {
	return &Work{parent: From(ctx), client: client, pass: true}
}

// NewStream returns a piece of work for a client's request that is no operation: calls made in its functions of the program are known to be waited
// for by it.
func NewStream(ctx context.Context, client any) *Work {
	return &Work{parent: From(ctx), client: client}
}

// NewNaming returns a piece of work for the call of Config.NewKey: calls made in that function are known to be waited for by it.
func NewNaming(ctx context.Context, client any) *Work {
	return &Work{parent: From(ctx), client: client, naming: true}
}

// Authorizing returns a new work inside w, for one call of Authorize for a request to origin.
func (w *Work) Authorizing(origin string) *Work {
	return &Work{parent: w, client: w.client, origin: origin}
}

// End ends the work. From then on From finds nothing in the contexts of its functions. The exception is a call of Authorize: From finds the work
// around it there.
func (w *Work) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// ended reports whether the work has ended.
func (w *Work) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// Visit notes that the work calls a function of the program, until Return. Callers that wait for the work give up if that takes too long.
func (w *Work) Visit() {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = now
}

// Return notes that the function of the program, entered by Visit, has returned: waits for this work may last again.
func (w *Work) Return() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Time{}
}

// patient returns how much longer a caller with this patience waits: the time that the work may still stay in the present function of the program.
// Zero or less: no longer.
func (w *Work) patient(patience time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		return patience
	}
	return patience - time.Since(w.since)
}

// wait waits until over is closed. Errors: the cause of ctx, if ctx ends before; ErrGuest, if the work stays in one function
// for longer than patience. A patience of zero is no bound.
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
			return sanitize.Cause(ctx)
		case <-looks:
			more := w.patient(patience)
			if more <= 0 {
				return ErrGuest
			}
			timer.Reset(more)
		}
	}
}

// Passes reports whether the work, or the work that started it, goes through all due operations of a journal (Resume or Run).
func (w *Work) Passes() bool {
	for ; w != nil; w = w.parent {
		if w.pass && !w.ended() {
			return true
		}
	}
	return false
}

// Names reports whether the work, or the work that started it, makes a key for this client (Config.NewKey).
func (w *Work) Names(client any) bool {
	for ; w != nil; w = w.parent {
		if w.naming && w.client == client && !w.ended() {
			return true
		}
	}
	return false
}

// Authorizes reports whether the context comes from a call of Config.Authorize by the same client, for a request to this origin. Such a call may
// itself send requests through the client, which must not wait for its result. w is one call in progress; parent is the call that started it.
func (w *Work) Authorizes(origin string) bool {
	for by := w; by != nil; by = by.parent {
		if by.origin == origin && origin != "" && by.client == w.client && !by.ended() {
			return true
		}
	}
	return false
}

// await notes by as a waiter for the work, until leave, and returns nil. If the work itself waits for by, neither would ever end: then it returns ErrCircle, and by
// does not wait. A nil by (the caller is in no function of the program) is not noted.
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

// leave notes that the work by no longer waits for w.
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

// awaitedBy reports whether other is w, or waits for w directly or through others. If w waited for it, neither would ever end.
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

// awaiting returns the works that wait for w directly: those that joined it, and its parent, which started it.
func (w *Work) awaiting() []*Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.waiters)
	if w.parent != nil {
		all = append(all, w.parent)
	}
	return all
}

// RequestKey is the key of a context's value. The value names the one request made with the context. A context with work
// has no such value of the contexts around it.
type RequestKey struct{}

// hidden reports whether a key's value is left out of the contexts for functions of the program: the key of the call's own request is, since a
// request made there is another one.
func hidden(key any) bool { return key == RequestKey{} }

// WithoutKey returns a context without the value of RequestKey, which names the one request made with the context.
func WithoutKey(ctx context.Context) context.Context {
	if ctx.Value(RequestKey{}) == nil {
		return ctx
	}
	return keyless{ctx}
}

// keyless is a context without a RequestKey.
type keyless struct{ context.Context }

// Value returns the value of the context around it, and nil for a hidden key.
func (k keyless) Value(key any) any {
	if hidden(key) {
		return nil
	}
	return k.Context.Value(key)
}

// workKey is the key of work in a context.
type workKey struct{}

// From returns the work that a context carries, as long as it has not ended; nil if there is none. The work of an Authorize, which has an origin, ends before the work around it:
// then From returns that one, or the next one around it that has not ended. Any other work that has ended gives nil, since its context was kept for too long.
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

// guest is a context with work.
type guest struct {
	context.Context
	work *Work
}

// Value returns the work of the guest, a function of the program that runs within a call; nil for a hidden key, and else the value of the context
// around it.
func (g *guest) Value(key any) any {
	switch {
	case key == workKey{}:
		return g.work
	case hidden(key):
		return nil
	}
	return g.Context.Value(key)
}
