package set1

import (
	"net/http"
	"sync"
)

// Of a key that has been tried.
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

// attempts is a layer that remembers failures, and lets the same request try again.
type attempts struct {
	next http.Handler
	mu   sync.Mutex
	keys map[string]*attempt
}

func newAttempts() http.Handler {
	return recovered(&attempts{next: newService(), keys: map[string]*attempt{}})
}

// enter takes a key for a request, if it is new or has failed, and returns a copy of how it was.
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

// leave says how a try has ended.
func (a *attempts) leave(id string, state int, p *reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys[id].state, a.keys[id].reply = state, p
}

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

// first is the first try. A crash of it is a failure.
func (a *attempts) first(w http.ResponseWriter, r *http.Request, id string) {
	defer func() {
		if crash := recover(); crash != nil {
			a.leave(id, failed, nil)
			panic(crash)
		}
	}()
	a.try(w, r, id)
}

// try executes a request.
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

// catcher is a writer that keeps what is written.
type catcher struct {
	header http.Header
	status int
	body   []byte
}

func (c *catcher) Header() http.Header    { return c.header }
func (c *catcher) WriteHeader(status int) { c.status = status }
func (c *catcher) Write(data []byte) (int, error) {
	c.body = append(c.body, data...)
	return len(data), nil
}
func (c *catcher) reply() *reply { return &reply{status: c.status, header: c.header, body: c.body} }

// limits is a layer that works at two requests at a time.
type limits struct {
	next  http.Handler
	store *memory
	at    slots
}

func newLimitedLocks() http.Handler {
	return &limits{next: newService(), store: newMemory(), at: make(slots, 2)}
}

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

// execute works at a request, if there is a slot. If there is none, the key has been taken nevertheless.
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
