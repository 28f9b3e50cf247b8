package persist

import (
	"fmt"
	"time"
)

// RequestKeeping is the choice of the time for which a record keeps the body of its request. The headers, without
// credentials, stay with the answer: they tell callers apart.
type RequestKeeping uint8

// The choices. Each keeps the body of an unfinished operation.
const (
	// RequestWithAnswer keeps the body for as long as the answer.
	RequestWithAnswer RequestKeeping = iota
	// RequestUntilSuccess drops the body of an operation that is confirmed as happened, or that the API's evidence settles so. Any
	// other end keeps it for as long as the answer: a person may begin the operation once more.
	RequestUntilSuccess
	// RequestUntilEnd drops the body after any end.
	RequestUntilEnd

	requestKeepingCount
)

var requestKeepingNames = [requestKeepingCount]string{"with the answer", "until success", "until its end"}

// String returns the choice in words, such as "until success".
func (k RequestKeeping) String() string {
	if k >= requestKeepingCount {
		return fmt.Sprintf("keeping(%d)", uint8(k))
	}
	return requestKeepingNames[k]
}

// requestUntil returns the time from which the record may lose its body, by its own rules. ever is false if it has no body, or keeps it as long as the answer.
// Two kinds of records keep the body longer: those with an answer that was not kept whole, until the end of the window (the time since the first send in which
// the API knows the key), as the answer may be asked for again; and those with a result that is owed to oncehttp.Config.OnResult.
func (r *Record) requestUntil() (at time.Time, ever bool) {
	switch {
	case !r.State.Final(), r.RequestGone(), r.Owed():
		return time.Time{}, false
	case r.KeepRequest == RequestUntilEnd, r.KeepRequest == RequestUntilSuccess && r.succeeded(): // from its end on, see below
	default:
		return time.Time{}, false
	}
	if a := r.Answer; a != nil && a.BodyDropped {
		if until := r.FirstSent.Add(r.Window); until.After(r.Finished) {
			return until, true
		}
	}
	return r.Finished, true
}

// succeeded reports whether the record ended as happened, and no person can take this end back: that is so for an answer of the server, and for evidence (an
// event of the API), and not for the word of a person (StateSettled).
func (r *Record) succeeded() bool {
	return r.FinalEffect() == EffectHappened && (r.State == StateConfirmed || r.Evidence != nil)
}

// RequestGone reports whether the record has lost the body of its request: by a sweep, or by its end.
func (r *Record) RequestGone() bool { return r.Swept || r.RequestDropped }

// DropRequest drops the body of an ended record if the time to keep it (KeepRequest) is over at now. It reports whether it did. The write that ends a
// record calls it first, so that such a body is not written once more.
func (r *Record) DropRequest(now time.Time) bool {
	at, ever := r.requestUntil()
	if !ever || now.Before(at) {
		return false
	}
	r.Body, r.RequestDropped = nil, true
	return true
}

// validateRequest returns ErrInvalid for an unknown KeepRequest, and for a record with a body although RequestDropped says that the body is gone.
func (r *Record) validateRequest() error {
	switch {
	case r.KeepRequest >= requestKeepingCount:
		return fmt.Errorf("%w: KeepRequest is %v", ErrInvalid, r.KeepRequest)
	case r.RequestDropped && r.Body != nil:
		return fmt.Errorf("%w: RequestDropped, with a body", ErrInvalid)
	}
	return nil
}
