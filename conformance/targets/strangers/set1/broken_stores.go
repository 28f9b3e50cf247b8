package set1

import (
	"net/http"
	"slices"
	"sync"
)

// ordered is a store with a bound: beyond 5,000 keys it forgets the oldest.
type ordered struct {
	*memory
	order []string // keys, in the order in which they were taken
}

// newRollback returns a server whose store forgets the oldest of more than 5,000 keys. Its fault: a failed request removes the newest key of the
// store, which may belong to another request.
func newRollback() http.Handler {
	l := newLayer(newService())
	l.store = &ordered{memory: newMemory()}
	return l
}

// claim reserves a key for the caller, if it is new: then the result is true, and the caller must execute the request. A new key removes the oldest
// one of more than 5,000, even while its request is at work.
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

// finish stores an answer, or rolls a failure back. Its fault: the rollback removes the last
// key of the order, which may be another key.
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

// slabs is a store with its answers in reused slabs of memory.
type slabs struct {
	*memory
	room sync.Mutex // guards free and the slabs
	free [][]byte
}

// newSlabs returns a server that keeps its answers in reused memory. Its fault: if a client leaves, the memory of its answer is free for the next
// one, though a repeat still gets it.
func newSlabs() http.Handler {
	l := newLayer(newService())
	l.store = &slabs{memory: newMemory()}
	return l
}

// finish copies the answer into a slab. Its fault: after a client has left, the slab is free
// again, though the entry still has it.
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

// write copies an answer into a free slab, or a new one. The caller holds s.room.
func (s *slabs) write(data []byte) []byte {
	slab := make([]byte, 0, 4096)
	if last := len(s.free) - 1; last >= 0 {
		slab = s.free[last][:0]
		s.free = s.free[:last]
	}
	return append(slab, data...)
}

// reply returns the stored reply with a copy of the slab's bytes.
func (s *slabs) reply(e *entry) *reply {
	s.room.Lock()
	defer s.room.Unlock()
	p := *e.reply
	p.body = slices.Clone(p.body)
	return &p
}

// crowd is a layer with repeats that wait for the first, and replace it if it fails.
type crowd struct {
	next  http.Handler
	store *memory
}

// newStampede returns a server where repeats of a running request wait for its end. Its fault: if that request fails, all of them are executed.
func newStampede() http.Handler { return &crowd{next: newService(), store: newMemory()} }

// ServeHTTP executes the first request of a key. Repeats wait for it, and execute, too, if it
// fails.
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

// replace puts a new entry for the caller, who must execute and finish it, after the first has
// failed. The fault: every waiting repeat does so, without a look at the others.
func (c *crowd) replace(id, print string) *entry {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	e := &entry{print: print, done: make(chan struct{})}
	c.store.entries[id] = e
	return e
}
