package memory

import (
	"slices"

	"github.com/oncehttp/oncehttp/persist"
)

// unresolved reports whether a caller without a key may still have to hear the end of the entry's record: its key was generated, and it is unfinished, or no
// caller was told of its end. A query for unresolved records may select it.
func (e *entry) unresolved() bool {
	return e.generated && (e.unreported || !e.state.Final())
}

// owed reports whether the state of the entry's record, an end or a hold, must still be given to Config.OnResult. A query for owed results selects it.
func (e *entry) owed() bool { return !e.owedFrom.IsZero() && e.state != persist.StatePending }

// noteOwed enters an entry into the index of owed results, or takes it out, as the entry is now. A result is owed if Config.OnResult still has to
// hear of it. The caller holds mu.
func (j *Journal) noteOwed(e *entry) {
	if e.owed() {
		j.owed[e] = struct{}{}
		return
	}
	delete(j.owed, e)
}

// link enters an entry into the index of unresolved records if it belongs there: a caller without a key may still have to hear how it ends. Entries
// of one fingerprint are a list. The caller holds mu.
func (j *Journal) link(e *entry) {
	if e.unresolved() {
		e.next = j.unresolved[e.fingerprint]
		j.unresolved[e.fingerprint] = e
	}
}

// unlink removes an entry from the index of records whose end a caller without a key may still have to hear (the unresolved ones). It changes nothing if the
// entry is not in it. The caller holds mu.
func (j *Journal) unlink(e *entry) {
	first := j.unresolved[e.fingerprint]
	if first == e && e.next == nil {
		delete(j.unresolved, e.fingerprint)
		return
	}
	if first == e {
		j.unresolved[e.fingerprint] = e.next
	}
	for p := first; p != nil; p = p.next {
		if p.next == e {
			p.next = e.next
		}
	}
	e.next = nil
}

// drop removes a record whole: from the indexes, the counts and the order of all records. The places of dropped records in the order are given up together,
// once they are half of all places: removing a million records stays linear.
func (j *Journal) drop(e *entry) {
	j.unlink(e)
	delete(j.owed, e)
	j.tally.leave(e)
	delete(j.byID, e.id)
	e.dropped, e.intent, e.progress = true, nil, nil
	if j.gone++; j.gone > 64 && j.gone > len(j.order)/2 {
		j.order = slices.DeleteFunc(j.order, func(e *entry) bool { return e.dropped })
		j.gone = 0
	}
}
