package bolt

// change is what one commit does to one record. What is nil stays as it is.
type change struct {
	seq     uint64
	intent  []byte // entry for the bucket of intents
	fate    []byte // entry for the bucket of fates
	request []byte // request body kept outside
	answer  []byte // answer body kept outside
	plain   bool   // the entry in the bucket of fates goes
	loose   bool   // the pieces in the bucket of bodies go
	drop    bool   // the record goes whole

	lazy bool // nobody waits for it, and it may be visible before it is durable

	// What undoes it in memory.
	fresh  bool // there was no such record
	before slot
	after  slot // set by undo
	keys   recordKeys
}

// queue holds changes, one per record.
type queue struct {
	changes []change
	at      map[uint64]int // index into changes, by Seq
	bytes   int
}

func newQueue() *queue { return &queue{at: map[uint64]int{}} }

// reset empties a queue that no reader looks at any more, and keeps its memory.
func (b *queue) reset() {
	if len(b.changes) > queueKeep {
		*b = *newQueue()
		return
	}
	clear(b.changes)
	clear(b.at)
	b.changes, b.bytes = b.changes[:0], 0
}

// queueKeep is how long a queue may have been whose memory is kept.
const queueKeep = 4096

// batch is what one commit makes durable.
type batch struct {
	*queue
	waiters int
	// wake gives true to one waiter, who then commits, and is closed once err
	// is known. It is made by the first who waits for somebody else's commit.
	wake chan bool
	err  error

	state state // of the journal with these changes

	// What Forget removes with this batch: how many records, and what they add to
	// the digest. They stay in memory until the batch is durable.
	forgotten       uint64
	forgottenDigest uint64
}

func (b *batch) forget(digest uint64) {
	b.forgotten++
	b.forgottenDigest += digest
}

// put adds a change, or merges it into the one that the record already has.
func (b *queue) put(c change) {
	b.bytes += len(c.intent) + len(c.fate) + len(c.request) + len(c.answer)
	i, found := b.at[c.seq]
	if !found {
		b.at[c.seq] = len(b.changes)
		b.changes = append(b.changes, c)
		return
	}
	b.changes[i].merge(c)
}

// merge adds a later change of the same record.
func (old *change) merge(c change) {
	if c.drop {
		c.fresh, c.before, c.lazy = old.fresh, old.before, false
		*old = c
		return
	}
	if c.intent != nil {
		old.intent = c.intent
	}
	if c.fate != nil {
		old.fate, old.answer, old.plain = c.fate, c.answer, false
	}
	if c.plain {
		old.plain, old.fate = true, nil
	}
	if c.loose {
		old.loose, old.request, old.answer = true, nil, nil
	}
	old.lazy = old.lazy && c.lazy
}

// get returns the change of a record, if there is one.
func (b *queue) get(seq uint64) *change {
	if i, found := b.at[seq]; found {
		return &b.changes[i]
	}
	return nil
}

// overlay is what is queued of one record, on top of what is in the file. Its
// slices are never written to.
type overlay struct {
	intent, fate []byte
	answer       []byte // of that fate, if its body is kept outside
	plain        bool
	request      bool // the request's body is queued, and not to be touched
}

func (o *overlay) add(c *change) {
	if c == nil {
		return
	}
	if c.intent != nil {
		o.intent = c.intent
	}
	if c.fate != nil {
		o.fate, o.plain = c.fate, false
	}
	if c.plain {
		o.fate, o.plain = nil, true
	}
	o.answer = c.answer
	o.request = o.request || c.request != nil
}
