package set1

import (
	"net/http"
	"slices"
	"sync"
)

// ordered is a store with a bound: beyond 5,000 keys the oldest is forgotten.
type ordered struct {
	*memory
	order []string // keys, in the order in which they were taken
}

func newRollback() http.Handler {
	l := newLayer(newService())
	l.store = &ordered{memory: newMemory()}
	return l
}

func (o *ordered) claim(id, print string) (*entry, bool) {
	e, mine := o.memory.claim(id, print)
	if !mine {
		return e, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.order = append(o.order, id)
	if len(o.order) > 5000 {
		delete(o.entries, o.order[0])
		o.order = o.order[1:]
	}
	return e, true
}

// finish rolls a failure back: its key goes, and with it the last line of the order, which is not always the key's own.
func (o *ordered) finish(r *http.Request, id string, e *entry, p *reply, keep bool) {
	o.memory.finish(r, id, e, p, keep)
	if keep {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.order) - 1; last >= 0 {
		delete(o.entries, o.order[last])
		o.order = o.order[:last]
	}
}

// slabs is a store that has its answers in slabs of memory, which are used again.
type slabs struct {
	*memory
	room sync.Mutex
	free [][]byte
}

func newSlabs() http.Handler {
	l := newLayer(newService())
	l.store = &slabs{memory: newMemory()}
	return l
}

// finish puts the answer into a slab. If nobody reads the answer, the slab is free again - but the entry has it, too.
func (s *slabs) finish(r *http.Request, id string, e *entry, p *reply, keep bool) {
	kept := *p
	s.room.Lock()
	kept.body = s.write(p.body)
	if r.Context().Err() != nil || !keep {
		s.free = append(s.free, kept.body)
	}
	s.room.Unlock()
	s.memory.finish(r, id, e, &kept, keep)
}

// write copies an answer into a slab.
func (s *slabs) write(data []byte) []byte {
	slab := make([]byte, 0, 4096)
	if last := len(s.free) - 1; last >= 0 {
		slab = s.free[last][:0]
		s.free = s.free[:last]
	}
	return append(slab, data...)
}

func (s *slabs) reply(e *entry) *reply {
	s.room.Lock()
	defer s.room.Unlock()
	p := *e.reply
	p.body = slices.Clone(p.body)
	return &p
}

// crowd is a store whose users wait for the first, and take its place if it fails.
type crowd struct {
	next  http.Handler
	store *memory
}

func newStampede() http.Handler { return &crowd{next: newService(), store: newMemory()} }

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !keyed(r) {
		c.next.ServeHTTP(w, r)
		return
	}
	body, ok := slurp(w, r)
	if !ok {
		return
	}
	id, print := byCaller(r, keyOf(r)), byBytes(r, body)
	e, mine := c.store.claim(id, print)
	if !mine {
		if e.print != print {
			refuse(w, http.StatusUnprocessableEntity, "the key was used for another request")
			return
		}
		<-e.done
		if e.reply != nil {
			give(w, e.reply)
			return
		}
		e = c.replace(id, print)
	}
	p := capture(c.next, r)
	c.store.finish(r, id, e, p, p.good())
	give(w, p)
}

// replace takes the place of a request that has failed. It does not look whether somebody else has done so.
func (c *crowd) replace(id, print string) *entry {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	e := &entry{print: print, done: make(chan struct{})}
	c.store.entries[id] = e
	return e
}
