package bolt

import "github.com/oncehttp/oncehttp/persist"

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

// recordKeys is what a record is indexed by.
type recordKeys struct {
	id    uint64 // hash of account and key
	stray uint64 // hash of the fingerprint
}

// batch is what one commit makes durable. Its changes are one per record.
type batch struct {
	changes []change
	at      map[uint64]int // index into changes, by Seq

	waiters int
	armed   bool // the timer will see to it
	due     bool // the timer has come
	// wake gives true to one waiter, who then commits, and is closed once err
	// is known.
	wake chan bool
	err  error

	digest  uint64 // of the journal with these changes
	records uint64
	lastSeq uint64
	bytes   int
}

// spare is the memory of a batch that is done, for the next one.
type spare struct {
	changes []change
	at      map[uint64]int
}

func newBatch(s spare) *batch {
	if s.at == nil {
		s.at = map[uint64]int{}
	}
	return &batch{changes: s.changes[:0], at: s.at, wake: make(chan bool, 1)}
}

// recycle takes the memory out of a batch that no reader looks at any more.
func (b *batch) recycle() spare {
	if b.at == nil || len(b.changes) > 4096 {
		return spare{}
	}
	s := spare{b.changes, b.at}
	clear(s.changes)
	clear(s.at)
	b.changes, b.at = nil, nil
	return s
}

// put adds a change, or merges it into the one that the record already has.
func (b *batch) put(c change) {
	b.bytes += len(c.intent) + len(c.fate) + len(c.request) + len(c.answer)
	i, found := b.at[c.seq]
	if !found {
		b.at[c.seq] = len(b.changes)
		b.changes = append(b.changes, c)
		return
	}
	old := &b.changes[i]
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

// get returns the change that a batch makes to a record.
func (b *batch) get(seq uint64) *change {
	if b == nil {
		return nil
	}
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

var (
	_ persist.Journal  = (*Journal)(nil)
	_ persist.Flusher  = (*Journal)(nil)
	_ persist.Attacher = (*Journal)(nil)
)
