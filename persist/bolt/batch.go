package bolt

// change is one commit's change of one record. A nil slice leaves its part as it is.
type change struct {
	seq      uint64
	intent   []byte // new entry for the bucket of intents
	progress []byte // new entry for the bucket of progress
	request  []byte // body of the request, for the bucket of bodies
	answer   []byte // body of the answer, for the bucket of bodies

	dropProgress bool // the entry in the bucket of progress is deleted
	dropBodies   bool // the pieces in the bucket of bodies are deleted
	drop         bool // the whole record is deleted

	lazy bool // no caller waits for it, and readers may see it before it is durable

	moved bool   // the record has another ID: another account, or it was erased
	was   uint64 // hash of its ID before this

	// Used by undo.
	fresh  bool // there was no such record
	before slot // the slot before the change
	after  slot // the slot after it; set by undo
	keys   recordKeys
}

// queue holds changes, at most one per record. The journal's mu guards it, until
// a commit has taken it.
type queue struct {
	changes []change
	at      map[uint64]int // index into changes, by Seq
	bytes   int            // of all entries and bodies
}

// newQueue returns an empty queue of changes for the next commit.
func newQueue() *queue { return &queue{at: map[uint64]int{}} }

// queueKeep is the largest number of changes in a queue if its memory is to be used again.
const queueKeep = 4096

// reset empties a queue of changes after their commit, so that the next batch (the changes of one commit) uses its memory. A queue that was very large
// (queueKeep) gets new memory: the old one is not kept for ever. No reader may still look into the queue.
func (q *queue) reset() {
	if len(q.changes) > queueKeep {
		*q = *newQueue()
		return
	}
	clear(q.changes)
	clear(q.at)
	q.changes, q.bytes = q.changes[:0], 0
}

// put adds a change to the queue. If the queue has a change of the same record already, the two become one.
func (q *queue) put(c change) {
	q.bytes += len(c.intent) + len(c.progress) + len(c.request) + len(c.answer)
	i, found := q.at[c.seq]
	if !found {
		q.at[c.seq] = len(q.changes)
		q.changes = append(q.changes, c)
		return
	}
	q.changes[i].merge(c)
}

// get returns the change of a record, or nil.
func (q *queue) get(seq uint64) *change {
	if i, found := q.at[seq]; found {
		return &q.changes[i]
	}
	return nil
}

// merge makes one change of c and a later change of the same record. Parts that the later change replaces are taken from it; a nil part leaves that of c. The
// parts are intent (the record as it was begun), progress (its changeable part) and long bodies. But a new progress always brings the answer stored apart with
// it, or none. A removal of the record replaces all of c, but for the facts that an undo needs. The result counts as lazy (nobody waits for it) only if both
// do.
func (c *change) merge(later change) {
	if later.moved { // the record has another ID; was is the hash of the one before
		c.moved, c.was, c.keys = true, later.was, later.keys
	}
	if later.drop {
		later.fresh, later.before, later.lazy, later.moved, later.was = c.fresh, c.before, false, c.moved, c.was
		*c = later
		return
	}
	if later.intent != nil {
		c.intent = later.intent
	}
	if later.progress != nil {
		c.progress, c.answer, c.dropProgress = later.progress, later.answer, false
	}
	if later.dropProgress {
		c.dropProgress, c.progress = true, nil
	}
	if later.dropBodies {
		c.dropBodies, c.request, c.answer = true, nil, nil
	}
	c.lazy = c.lazy && later.lazy
}

// batch is the content of one commit.
type batch struct {
	*queue
	waiters int // how many callers wait for it
	// wake gives true to one waiter, and this waiter commits. It is closed once err is known. The first
	// caller waiting for another caller's commit makes it.
	wake chan bool
	err  error

	state state // of the file with these changes

	// Of the records removed by Forget with this batch: their number, and their part of the digest. They
	// stay in memory until the batch is durable.
	forgotten       uint64
	forgottenDigest uint64

	moved bool // it gives some record another ID

	fact *fact // the fact it writes; nil: none
}

// countForgotten counts a record that Forget removes with this batch (the changes of one commit). digest is its part of the sum over all records that finds
// damage. The state written with the commit must not have the record any more, while memory keeps it until the commit is done.
func (b *batch) countForgotten(digest uint64) {
	b.forgotten++
	b.forgottenDigest += digest
}

// overlay is the queued changes of one record, on top of the file. Its slices are only read.
type overlay struct {
	intent, progress []byte
	answer           []byte // of this progress, if its body is kept outside
	dropProgress     bool
	request          bool // the body of the request is queued, and is still the caller's
}

// add puts the parts of a queued change over those that the overlay has so far. An overlay is the content of a record that is queued, and not yet in the file:
// intent (the record as it was begun) and progress (its changeable part). Changes must be added from the oldest to the newest. c may be nil: no change.
// request says that some change has a body of the request that still belongs to the caller.
func (o *overlay) add(c *change) {
	if c == nil {
		return
	}
	if c.intent != nil {
		o.intent = c.intent
	}
	if c.progress != nil {
		o.progress, o.dropProgress = c.progress, false
	}
	if c.dropProgress {
		o.progress, o.dropProgress = nil, true
	}
	// A later change brings its own answer, or none: its progress says which.
	o.answer = c.answer
	o.request = o.request || c.request != nil
}
