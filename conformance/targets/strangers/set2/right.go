package set2

import (
	"net/http"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
)

// newPolling has repeats wait for the first, and keeps the refusals of the service. Its own failures free the key.
func newPolling() http.Handler {
	l := newLayer()
	l.polls = true
	l.keeps = func(_ *call, status int) bool { return status < 500 && status != http.StatusTooManyRequests }
	return l
}

// newCrowded has three requests at a time, be they new or not.
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

// newForgetful forgets what nobody has asked for in 61 seconds, and takes no large bodies.
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

// newStriped has each key under one of 8 locks, from the look at its row to the end of its work. Who waits for too long comes again.
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

// outbox answers that a payment is accepted, and has it made a little later. A key belongs to the caller who used it first, for good.
type outbox struct {
	layer *layer
	mu    sync.Mutex
	owner map[string]string
}

func newOutbox() http.Handler {
	s := strangers.NewService()
	s.Late = 40 * time.Millisecond
	l := newLayer()
	l.next = accepting(s)
	return &outbox{layer: l, owner: map[string]string{}}
}

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

// ownerOf returns whose a call's key is.
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

// WriteHeader writes the status.
func (a accepted) WriteHeader(status int) {
	if status == http.StatusCreated {
		status = http.StatusAccepted
	}
	a.ResponseWriter.WriteHeader(status)
}
