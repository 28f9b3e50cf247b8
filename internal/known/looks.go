package known

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// Looks lets simultaneous callers with the same key share a look. The zero value is ready; it is safe for concurrent
// use.
type Looks[K comparable, V any] struct {
	mu sync.Mutex
	at map[K]*queue[V]
}

// queue is the looks at one thing: the look under way, and the next one, for callers arrived meanwhile.
type queue[V any] struct {
	current, next *look[V]
}

// look is one look for all its waiting callers.
type look[V any] struct {
	over  chan struct{}
	value V
	err   error
	left  bool // the caller that was to make it has left: there is no result
}

// lookingKey is the key of a value in the context of a look.
type lookingKey struct{}

// Share returns the result of a look at key begun after the call, its own or another caller's. f makes the look,
// without a lock held. The result is shared, so its users must not change it without a lock. After a panic of another
// caller's f, err is errLookEnded.
//
// Callers wait for the look under way at their key, but f is a user's code, and nobody waits for himself. A call made
// by f with its context makes a look of its own at once. So does a caller that has waited for as long as patience: f
// may have made it with another context. A patience of zero is no bound. A wait ends with ctx, and err is its cause
// then. The context of f has the values of ctx, and does not end: others share its look.
func (l *Looks[K, V]) Share(ctx context.Context, patience time.Duration, key K, f func(context.Context) (V, error)) (V, error) {
	within := context.WithValue(context.WithoutCancel(ctx), lookingKey{}, true)
	if ctx.Value(lookingKey{}) != nil {
		return f(within)
	}
	var late <-chan time.Time
	for {
		own, other := l.enter(key) // own: the look that this caller makes, after other; nil: another caller makes it
		if other == nil {
			return l.run(key, own, within, f)
		}
		if late == nil && patience > 0 {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			late = timer.C
		}
		err := other.await(ctx, late)
		switch {
		case err == nil && own != nil:
			l.advance(key, own)
			return l.run(key, own, within, f)
		case err == nil && !other.left: // left: its caller gave it up, and it has no result
			return other.value, other.err
		case own != nil:
			l.leave(key, own)
		}
		switch {
		case err == errLookLate:
			return f(within)
		case err != nil:
			var none V
			return none, err
		}
	}
}

// await waits for the end of a read that another caller makes. Errors: the cause of ctx; errLookLate if late comes first, so that
// nobody waits without an end.
func (l *look[V]) await(ctx context.Context, late <-chan time.Time) error {
	select {
	case <-l.over:
		return nil
	case <-ctx.Done():
		return sanitize.Cause(ctx)
	case <-late:
		return errLookLate
	}
}

// enter adds a caller to the queue of reads (looks) at key. other is the read that the caller awaits first; nil: none is under
// way. own is the next read, which this caller then makes by run, or gives up by leave; nil: another caller makes it, and other
// is that read.
func (l *Looks[K, V]) enter(key K) (own, other *look[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[K]*queue[V]{}
	}
	q := l.at[key]
	switch {
	case q == nil:
		own = newLook[V]()
		l.at[key] = &queue[V]{current: own}
		return own, nil
	case q.next != nil:
		return nil, q.next
	}
	q.next = newLook[V]()
	return q.next, q.current
}

// advance makes own, the next read in the queue at key, the one under way, since the read before it is over.
func (l *Looks[K, V]) advance(key K, own *look[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.at[key]
	q.current, q.next = own, nil
}

// leave gives up own, a read that this caller was to make next, before it has begun: the caller does not wait any longer. Others
// that wait for it enter the queue again, and one of them makes it.
func (l *Looks[K, V]) leave(key K, own *look[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.at[key]
	q.next = nil
	select {
	case <-q.current.over: // it has left the queue to the next one
		delete(l.at, key)
	default:
	}
	own.left = true
	close(own.over)
}

// newLook returns a read of the journal, shared by its waiting callers, that has not ended. Its error stands if it ends by a
// panic.
func newLook[V any]() *look[V] { return &look[V]{over: make(chan struct{}), err: errLookEnded} }

// run makes a read by f, hands its result to all who wait for own, and forgets the queue if no caller waits for another read. A
// panic of f goes on; the others then get errLookEnded.
func (l *Looks[K, V]) run(key K, own *look[V], within context.Context, f func(context.Context) (V, error)) (V, error) {
	defer func() { // also after a panic
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.at[key].next == nil {
			delete(l.at, key)
		}
		close(own.over)
	}()
	own.value, own.err = f(within)
	return own.value, own.err
}

// errLookEnded is for callers waiting for a look ended by a panic.
var errLookEnded = errors.New("the look at the journal was ended by a panic")

// errLookLate ends a wait for a look after its patience.
var errLookLate = errors.New("the look at the journal takes long")
