package referee

import (
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// operationsMax and sendsMax bound the memory of a referee: operations, and sends
// of one operation. Later ones meet their faults, but are not judged.
const (
	operationsMax = 10_000
	sendsMax      = 1_000
)

// send is one request of the client and its reply. The referee's lock guards it;
// snapshot copies it.
type send struct {
	*mockserver.Send
	mockserver.Reply
	done     bool               // Reply is set
	overlaps []*mockserver.Send // sends of the operation that arrived before this one ended, while its client waited
}

// operation is one operation of the client.
type operation struct {
	name     string  // Send.Operation; may be empty
	scenario string  // the name of its scenario; empty: there are none
	sends    []*send // in order of arrival; at least one, at most sendsMax
}

// history holds the operations of one run. The referee's lock guards it.
type history struct {
	scenarios  []Scenario
	operations []*operation               // in order of appearance, at most operationsMax
	byID       map[string]*operation      // by "operation NAME", or "key KEY" without a name
	bySend     map[*mockserver.Send]*send // sends that have not ended
	begun      time.Time                  // the start of the run
}

// newHistory returns an empty history of a client's sends, begun now. Operations are given the names of the scenarios in turn; without scenarios they
// have none.
func newHistory(scenarios []Scenario) *history {
	return &history{
		scenarios: scenarios, byID: map[string]*operation{}, bySend: map[*mockserver.Send]*send{}, begun: time.Now(),
	}
}

// arrived adds a send to its operation, and to the overlaps of the operation's open sends (not yet answered, with a client that waits), even with
// another key. A send beyond the bounds of memory is ignored.
func (h *history) arrived(s *mockserver.Send) {
	op := h.operation(s)
	if op == nil || len(op.sends) == sendsMax {
		return
	}
	for _, other := range op.sends {
		if !other.done && other.Waiting() {
			other.overlaps = append(other.overlaps, s)
		}
	}
	added := &send{Send: s}
	op.sends = append(op.sends, added)
	h.bySend[s] = added
}

// operation returns the operation to which a send belongs, by the operation pointer or by its key; a new one is added. It returns nil past
// operationsMax.
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

// ended notes the reply to a send. A send of an earlier run, or beyond the bounds, is ignored.
func (h *history) ended(s *mockserver.Send, reply mockserver.Reply) {
	if one := h.bySend[s]; one != nil {
		one.Reply, one.done = reply, true
		delete(h.bySend, s)
	}
}

// state returns whether the last send of each operation has a final answer (settled; Final(false) takes a 4xx for final even if an answer before it
// was lost), and whether a send has not ended (busy).
func (h *history) state() (settled, busy bool) {
	settled = true
	for _, op := range h.operations {
		last := op.sends[len(op.sends)-1]
		if !last.done || !last.Whole || !last.Final(false) {
			settled = false
		}
	}
	return settled, len(h.bySend) > 0
}

// snapshot copies the operations and their sends, to be judged without the lock. An open send counts as not answered (its Reply is zero), and as
// ended now.
func (h *history) snapshot() []operation {
	copies := make([]operation, len(h.operations))
	for i, at := range h.operations {
		copies[i] = operation{name: at.name, scenario: at.scenario}
		for _, one := range at.sends {
			copied := *one
			if !copied.done {
				copied.overlaps, copied.Ended = nil, time.Now() // overlaps are judged at the end of a send
			}
			copies[i].sends = append(copies[i].sends, &copied)
		}
	}
	return copies
}

// ignored returns the number of later sends that came while this one was handled and its client still waited for the answer.
func (s *send) ignored() int {
	n := 0
	for _, later := range s.overlaps {
		if s.WaitedFor(later) {
			n++
		}
	}
	return n
}

// pair is a send with its answer, and the next send of the same operation.
type pair struct {
	before, after *send
	op            *operation
	nth           int // the index of before in the operation
}

// pairs returns the pairs of successive sends in each operation, by operation, for the rules on waits. A send that arrived before the answer before
// it ended forms no pair: its sender did not wait. The last field is the index of the earlier send.
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
