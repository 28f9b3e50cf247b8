package run

import "sync"

// handover is a result that callers may take before its record is written. If a caller with OnResult has taken it
// before the write, the record owes nothing. Otherwise the later of the two, caller or writer, marks it as
// delivered. A nil handover is never taken. It is safe for concurrent use.
type handover struct {
	mu    sync.Mutex
	taken bool   // a caller has the result
	owed  uint64 // result.owed; zero: it is not written
}

// take notes that a caller has the result. It returns the revision of the written record whose delivery the caller then marks, so that OnResult does
// not get it again; zero if the record is not written, or nothing is to be delivered. h may be nil.
func (h *handover) take() uint64 {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = true
	return h.owed
}

// isTaken reports whether a caller has got the result already, before its record was written. h may be nil: then no answer is given so
// early.
func (h *handover) isTaken() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken
}

// isWritten notes the revision of the written record with a result to deliver (owed), and reports whether it is to be marked as delivered: a caller
// has the result already.
func (h *handover) isWritten(owed uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.owed = owed
	return h.taken && owed != 0
}
