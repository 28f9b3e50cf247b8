package set2

import (
	"net/http"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
)

// newPolling returns a correct server whose repeats wait for the first request. It keeps refusals of the service; failures free the key.
func newPolling() http.Handler {
	l := newLayer()
	l.polls = true
	l.keeps = func(_ *call, status int) bool { return status < 500 && status != http.StatusTooManyRequests }
	return l
}

// newCrowded returns a correct server that answers 429 while three requests are at work.
func newCrowded() http.Handler {
	l := newLayer()
	room := make(chan struct{}, 3)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := open(w, r, l.next)
		if !ok {
			return
		}
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			l.serve(c)
		default:
			w.Header().Set("Retry-After", "1")
			c.refuse(http.StatusTooManyRequests, "three requests are at work")
		}
	})
}

// newForgetful returns a correct server that forgets keys after 61 seconds without a request, and refuses large bodies.
func newForgetful() http.Handler {
	l := newLayer()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.rows.sweep(61 * time.Second)
		c, ok := open(w, r, l.next)
		if !ok {
			return
		}
		if len(c.body) > 100<<10 {
			c.refuse(http.StatusRequestEntityTooLarge, "over 100 KB")
			return
		}
		l.serve(c)
	})
}

// newStriped returns a correct server that holds one of 8 locks for each key from its lookup to the end of its work. Requests that wait for 100 ms
// get 503.
func newStriped() http.Handler {
	l := newLayer()
	var stripes [8]strangers.Lock
	for i := range stripes {
		stripes[i] = strangers.NewLock()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := open(w, r, l.next)
		if !ok {
			return
		}
		stripe := stripes[c.hash()%8]
		patience := time.NewTimer(100 * time.Millisecond)
		defer patience.Stop()
		select {
		case stripe <- struct{}{}:
			defer stripe.Unlock()
			l.serve(c)
		case <-patience.C:
			c.refuse(http.StatusServiceUnavailable, "somebody else has the lock")
		}
	})
}

// outbox answers 202, and has its effects a little later. A key belongs to its first caller
// for good.
type outbox struct {
	layer *layer
	mu    sync.Mutex        // guards owner
	owner map[string]string // callers by key
}

// newOutbox returns a correct server with effects 40 ms after its answers, as one that writes them into an outbox first.
func newOutbox() http.Handler {
	s := strangers.NewService()
	s.Late = 40 * time.Millisecond
	l := newLayer()
	l.next = accepting(s)
	return &outbox{layer: l, owner: map[string]string{}}
}

// ServeHTTP requires a key of this caller's own, and leaves the rest to the layer.
func (o *outbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Idempotency-Key") == "" && r.Method != http.MethodGet {
		(&call{w: w, r: r}).refuse(http.StatusBadRequest, "a key is needed")
		return
	}
	c, ok := open(w, r, o.layer.next)
	if !ok {
		return
	}
	if o.ownerOf(c) != c.caller {
		c.refuse(http.StatusForbidden, "the key is of somebody else")
		return
	}
	o.layer.serve(c)
}

// ownerOf returns the owner of a call's key. A new key goes to this caller.
func (o *outbox) ownerOf(c *call) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, owned := o.owner[c.key]; !owned {
		o.owner[c.key] = c.caller
	}
	return o.owner[c.key]
}

// accepting answers 202 where a handler answers 201.
func accepting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(accepted{w}, r) })
}

// accepted is a writer that answers 202 for 201.
type accepted struct{ http.ResponseWriter }

// WriteHeader writes the status, with 202 in the place of 201.
func (a accepted) WriteHeader(status int) {
	if status == http.StatusCreated {
		status = http.StatusAccepted
	}
	a.ResponseWriter.WriteHeader(status)
}
