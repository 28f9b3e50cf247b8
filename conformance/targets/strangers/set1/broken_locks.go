package set1

import (
	"net/http"
	"sync"
)

// The states of a key.
const (
	running = iota
	failed
	finished
)

// attempt is the state of a key.
type attempt struct {
	print string
	state int
	reply *reply
}

// attempts is a layer that remembers failures and lets the same request try again. Its fault:
// a crash in a later try leaves the key locked.
type attempts struct {
	next http.Handler
	mu   sync.Mutex // guards keys and their attempts
	keys map[string]*attempt
}

// newAttempts returns a server that stores the state of each try. Its fault: a panic in a later try leaves the key locked.
func newAttempts() http.Handler {
	return recovered(&attempts{next: newService(), keys: map[string]*attempt{}})
}

// enter returns the state of a key before this request, as a copy. A new key, or a failed one for the same request, is running afterwards (the zero
// state), and the caller must execute and call leave.
func (a *attempts) enter(id, print string) (was attempt, isNew bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.keys[id]
	if now == nil {
		a.keys[id] = &attempt{print: print}
		return attempt{print: print}, true
	}
	was = *now
	if now.state == failed && now.print == print {
		now.state = running
	}
	return was, false
}

// leave stores the end of a try; p is nil for a failure.
func (a *attempts) leave(id string, state int, p *reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys[id].state, a.keys[id].reply = state, p
}

// ServeHTTP executes a request with a new or failed key, and replays a finished one. The fault: of a panic, first stores that the try has failed, and
// try does not.
func (a *attempts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !keyed(r) {
		a.next.ServeHTTP(w, r)
		return
	}
	body, ok := slurp(w, r)
	if !ok {
		return
	}
	id, print := byCaller(r, keyOf(r)), byBytes(r, body)
	was, isNew := a.enter(id, print)
	switch {
	case isNew:
		a.first(w, r, id)
	case was.print != print:
		refuse(w, http.StatusUnprocessableEntity, "the key was used for another request")
	case was.state == running:
		refuse(w, http.StatusConflict, "the first is at work")
	case was.state == failed:
		a.try(w, r, id)
	default:
		give(w, was.reply)
	}
}

// first executes the first try under a key. If the handler panics, the try is stored as a failure, so that a later request may try again, and the
// panic goes on.
func (a *attempts) first(w http.ResponseWriter, r *http.Request, id string) {
	defer func() {
		if crash := recover(); crash != nil {
			a.leave(id, failed, nil)
			panic(crash)
		}
	}()
	a.try(w, r, id)
}

// try executes a request and stores its end. If the request panics, the key stays locked for ever, except in the first try: this is the fault.
func (a *attempts) try(w http.ResponseWriter, r *http.Request, id string) {
	p := &catcher{header: http.Header{}}
	a.next.ServeHTTP(p, r)
	if p.status >= 300 {
		a.leave(id, failed, nil)
	} else {
		a.leave(id, finished, p.reply())
	}
	give(w, p.reply())
}

// catcher is a ResponseWriter that keeps the answer. Its status is 0 without WriteHeader.
type catcher struct {
	header http.Header
	status int
	body   []byte
}

// Header implements [http.ResponseWriter]. The header is kept, and not sent.
func (c *catcher) Header() http.Header { return c.header }

// WriteHeader implements [http.ResponseWriter]. It keeps the status.
func (c *catcher) WriteHeader(status int) { c.status = status }

// Write implements [http.ResponseWriter]. It keeps the body.
func (c *catcher) Write(data []byte) (int, error) {
	c.body = append(c.body, data...)
	return len(data), nil
}

// reply returns the answer caught so far.
func (c *catcher) reply() *reply { return &reply{status: c.status, header: c.header, body: c.body} }

// limits is a layer that works at two requests at a time. Its fault: a request without a slot
// leaves its key locked.
type limits struct {
	next  http.Handler
	store *memory
	at    slots
}

// newLimitedLocks returns a server that works at two requests at a time. Its fault, which the test suite must find: a request that is refused with
// 429, because two others are at work, leaves its key locked.
func newLimitedLocks() http.Handler {
	return &limits{next: newService(), store: newMemory(), at: make(slots, 2)}
}

// ServeHTTP executes the first request of a key, if fewer than two are at work, and replays its answer to repeats.
func (l *limits) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !keyed(r) {
		l.next.ServeHTTP(w, r)
		return
	}
	body, ok := slurp(w, r)
	if !ok {
		return
	}
	id, print := byCaller(r, keyOf(r)), byBytes(r, body)
	e, mine := l.store.claim(id, print)
	switch {
	case mine:
		l.execute(w, r, id, e)
	case e.print != print:
		refuse(w, http.StatusUnprocessableEntity, "the key was used for another request")
	case !ended(e):
		refuse(w, http.StatusConflict, "the first is at work")
	case e.reply == nil:
		refuse(w, http.StatusConflict, "the first has failed just now")
	default:
		give(w, e.reply)
	}
}

// execute handles the first request of a key, or answers 429 if no slot is free. Its fault: after the 429 the key stays locked.
func (l *limits) execute(w http.ResponseWriter, r *http.Request, id string, e *entry) {
	if !l.at.take() {
		tooMany(w)
		return
	}
	defer l.at.free()
	p := capture(l.next, r)
	l.store.finish(r, id, e, p, p.good())
	give(w, p)
}
