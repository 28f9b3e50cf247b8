package referee

import (
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// operationsMax and sendsMax bound what a referee remembers: operations, and
// sends of one operation. What comes later is played, and not judged.
const (
	operationsMax = 10_000
	sendsMax      = 1_000
)

// send is one request of the client and how it ended.
type send struct {
	*mockserver.Send
	mockserver.Reply
	done     bool               // it has ended: Reply is set
	overlaps []*mockserver.Send // sends that came while this one was being handled
}

// operation is one operation of the client.
type operation struct {
	name     string
	scenario string
	sends    []*send
}

// history is everything that a referee has seen. The referee's lock guards it.
type history struct {
	scenarios  []Scenario
	operations []*operation
	byID       map[string]*operation
	bySend     map[*mockserver.Send]*send // those that have not ended
	begun      time.Time
}

func newHistory(scenarios []Scenario) *history {
	return &history{
		scenarios: scenarios, byID: map[string]*operation{}, bySend: map[*mockserver.Send]*send{}, begun: time.Now(),
	}
}

// arrived files a send under its operation. Sends of the same operation that are
// still being handled learn of it, whatever its key.
func (h *history) arrived(s *mockserver.Send) {
	at := h.operation(s)
	if at == nil || len(at.sends) == sendsMax {
		return
	}
	for _, other := range at.sends {
		if !other.done && other.Waiting() {
			other.overlaps = append(other.overlaps, s)
		}
	}
	one := &send{Send: s}
	at.sends = append(at.sends, one)
	h.bySend[s] = one
}

// operation finds the operation of a send, or begins it; nil: there are too many.
func (h *history) operation(s *mockserver.Send) *operation {
	id := "operation " + s.Operation
	if s.Operation == "" {
		id = "key " + s.Key
	}
	at := h.byID[id]
	if at == nil && len(h.operations) < operationsMax {
		at = &operation{name: s.Operation}
		if n := len(h.scenarios); n > 0 {
			at.scenario = h.scenarios[len(h.operations)%n].Name
		}
		h.byID[id] = at
		h.operations = append(h.operations, at)
	}
	return at
}

// ended notes how a send ended. One from before the run began is passed over.
func (h *history) ended(s *mockserver.Send, reply mockserver.Reply) {
	if one := h.bySend[s]; one != nil {
		one.Reply, one.done = reply, true
		delete(h.bySend, s)
	}
}

// state reports whether every operation has its answer, and whether a send is
// being handled.
func (h *history) state() (settled, busy bool) {
	settled = true
	for _, at := range h.operations {
		last := at.sends[len(at.sends)-1]
		if !last.done || !last.Whole || !last.Final(false) {
			settled = false
		}
	}
	return settled, len(h.bySend) > 0
}

// snapshot copies the operations, so that they can be judged without the lock.
// What is still being handled counts as not answered.
func (h *history) snapshot() []operation {
	copies := make([]operation, len(h.operations))
	for i, at := range h.operations {
		copies[i] = operation{name: at.name, scenario: at.scenario}
		for _, one := range at.sends {
			copied := *one
			if !copied.done {
				copied.overlaps, copied.Ended = nil, time.Now()
			}
			copies[i].sends = append(copies[i].sends, &copied)
		}
	}
	return copies
}

// ignored counts the sends that did not wait for this one, though its client was
// there.
func (s *send) ignored() int {
	n := 0
	for _, later := range s.overlaps {
		if s.WaitedFor(later) {
			n++
		}
	}
	return n
}

// pair is an answer and the send that followed it in the same operation.
type pair struct {
	before, after *send
	op            *operation
	nth           int // of the answer, from 0
}

// pairs lists what followed what; a send that did not wait for the answer before
// it did not follow it.
func pairs(operations []operation) []pair {
	var all []pair
	for i := range operations {
		sends := operations[i].sends
		for j := 1; j < len(sends); j++ {
			if !sends[j].Begun.Before(sends[j-1].Ended) {
				all = append(all, pair{sends[j-1], sends[j], &operations[i], j - 1})
			}
		}
	}
	return all
}
