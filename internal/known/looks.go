package known

import (
	"errors"
	"sync"
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
}

// Share returns the result of a look at key begun after the call, its own or another caller's. f makes the look,
// without a lock held; only one runs for a key at a time. The result is shared, so its users must not change it
// without a lock. After a panic of another caller's f, err is errLookEnded.
func (l *Looks[K, V]) Share(key K, f func() (V, error)) (V, error) {
	l.mu.Lock()
	if l.at == nil {
		l.at = map[K]*queue[V]{}
	}
	q := l.at[key]
	switch {
	case q == nil:
		own := newLook[V]()
		l.at[key] = &queue[V]{current: own}
		l.mu.Unlock()
		return l.run(key, own, f)
	case q.next != nil:
		others := q.next
		l.mu.Unlock()
		<-others.over
		return others.value, others.err
	}
	before, own := q.current, newLook[V]()
	q.next = own
	l.mu.Unlock()
	<-before.over
	l.mu.Lock()
	q.current, q.next = own, nil
	l.mu.Unlock()
	return l.run(key, own, f)
}

func newLook[V any]() *look[V] { return &look[V]{over: make(chan struct{}), err: errLookEnded} }

// run makes a look, closes own.over, and forgets the queue if no caller waits for another look. A panic of f goes
// on.
func (l *Looks[K, V]) run(key K, own *look[V], f func() (V, error)) (V, error) {
	defer func() { // also after a panic
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.at[key].next == nil {
			delete(l.at, key)
		}
		close(own.over)
	}()
	own.value, own.err = f()
	return own.value, own.err
}

// errLookEnded is for callers waiting for a look ended by a panic.
var errLookEnded = errors.New("the look at the journal was ended by a panic")
