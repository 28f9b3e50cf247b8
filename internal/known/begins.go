package known

import (
	"sync"

	"github.com/oncehttp/oncehttp/persist"
)

// Begins are the records of the Begins under way. The zero value is ready; it is safe for concurrent use.
type Begins struct {
	mu  sync.Mutex
	now map[persist.ID]begins
}

// begins is the knowledge of one operation.
type begins struct {
	underWay int
	watches  int
	made     uint64 // the number of Begins ended with a record
}

// Enter notes the start of a Begin of the operation (the write of its new record into the journal). Leave follows when it is over.
func (b *Begins) Enter(id persist.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.now[id]
	at.underWay++
	b.set(id, at)
}

// Leave ends the Begin noted by Enter. made: the journal has a record of the operation.
func (b *Begins) Leave(id persist.ID, made bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.now[id]
	at.underWay--
	if made {
		at.made++
	}
	b.set(id, at)
}

// set stores the counts of Begins and watches of an operation, or forgets the operation if both are zero. The caller holds mu.
func (b *Begins) set(id persist.ID, at begins) {
	if at.underWay == 0 && at.watches == 0 {
		delete(b.now, id)
		return
	}
	if b.now == nil {
		b.now = map[persist.ID]begins{}
	}
	b.now[id] = at
}

// Watch starts to watch the Begins of an operation in this process; the End of the result must follow. A call that has read "no
// record" so learns whether another call began the operation meanwhile.
func (b *Begins) Watch(id persist.ID) Watch {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.now[id]
	at.watches++
	b.set(id, at)
	return Watch{b, id, at.made}
}

// Watch notices the Begins of one operation.
type Watch struct {
	of   *Begins
	id   persist.ID
	made uint64 // when the watch began
}

// End ends the watch, and reports whether a Begin (the write of a new record) is under way, or one has ended with a
// record since the watch began: at.made counts these, and w.made is the count at that time. It must be called once.
func (w Watch) End() (begun bool) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	at := w.of.now[w.id]
	at.watches--
	w.of.set(w.id, at)
	return at.underWay > 0 || at.made > w.made
}
