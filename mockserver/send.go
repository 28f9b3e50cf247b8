package mockserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Send is one request as the server saw it when it had arrived whole. It does
// not change afterwards. The server makes one: methods of a zero one may panic.
type Send struct {
	// Key is the idempotency key; empty where there is none, or an invalid one.
	Key string
	// Keyed: there is a key, valid or not.
	Keyed bool
	// Honoured: the API honours keys on this method at this path.
	Honoured bool
	// KeyError says why the key is invalid; empty: it is not. It never holds
	// the key.
	KeyError string
	// Operation identifies the operation: what OperationPointer finds, which
	// may be empty, or the key where no pointer is configured.
	Operation string
	// Method and Path are the request's.
	Method, Path string
	// Fingerprint is the SHA-256 of target, content type and body: equal
	// requests have equal ones.
	Fingerprint [32]byte
	// FirstSent is when the operation was first sent, as the request says it; empty where the profile asks for no such
	// header.
	FirstSent string
	// Connection tells the connections of clients apart; empty: it is not known.
	Connection string
	// Difference says in what the request differs from the first one with its
	// key: names, lengths and places, no values. Empty: in nothing.
	Difference string
	// Begun is when the request had arrived.
	Begun time.Time

	context context.Context
}

// Waiting reports whether the client is known to be still connected. It may be
// called at any time.
func (s *Send) Waiting() bool { return s.context.Err() == nil }

// HasRead reports whether the client that sent s is known to have read the
// answer to an earlier send: s came on the same connection, which a client of
// HTTP/1.1 uses again only when it has read the answer before. A server cannot
// know it otherwise; a client that was killed once the answer was written may
// never have seen it.
func (s *Send) HasRead(earlier *Send) bool {
	return s.Connection != "" && s.Connection == earlier.Connection
}

// Reply is how a send ended.
type Reply struct {
	// Status is what was answered; 0: nothing.
	Status int
	// Whole: all of the answer was written to a client that was connected. It
	// does not follow that the client has read it.
	Whole bool
	// Cut: the server cut the answer's body off.
	Cut bool
	// RetryAfter is the Retry-After header as it was sent; empty: none.
	RetryAfter string
	// BodyWait is the longest wait that the body asks for, where the profile says that bodies do; zero: none.
	BodyWait time.Duration
	// Advised: the answer said, as the profile spells it, that trying again is
	// of no use.
	Advised bool
	// Replay: the answer was given from the store, or is marked as a replay.
	Replay bool
	// Mismatch: the answer says that the key belongs to another request.
	Mismatch bool
	// InProgress: the answer says that the first request is being handled.
	InProgress bool
	// Ended is when the server wrote the last of the answer, or cut the
	// connection: just before it, so that a send that follows begins later.
	Ended time.Time
}

// String is the reply in words, such as "a 503", "no answer".
func (r Reply) String() string {
	switch {
	case r.Status == 0:
		return "no answer"
	case !r.Whole:
		return fmt.Sprintf("a %d that was cut off", r.Status)
	default:
		return fmt.Sprintf("a %d", r.Status)
	}
}

// Final reports whether the answer settles the operation, so that asking again
// is waste. inDoubt: an answer before it was lost, after which a refusal
// settles nothing.
func (r Reply) Final(inDoubt bool) bool {
	switch {
	case r.Status >= 200 && r.Status < 300, r.Advised:
		return true
	case r.Status < 400 || r.Status >= 500 || inDoubt:
		return false
	}
	again := []int{401, 403, 407, 408, 409, 421, 423, 424, 425, 429}
	return !slices.Contains(again, r.Status)
}

// NotBefore is the earliest time for the next send that Retry-After, in seconds or
// as any of the three dates of RFC 9110, and BodyWait allow. False: there is no
// hint, or one that cannot be read.
func (r Reply) NotBefore() (time.Time, bool) {
	at, found := r.afterHeader()
	if told := r.Ended.Add(r.BodyWait); r.BodyWait > 0 && (!found || told.After(at)) {
		return told, true
	}
	return at, found
}

// afterHeader is NotBefore by Retry-After alone.
func (r Reply) afterHeader() (time.Time, bool) {
	text := strings.TrimSpace(r.RetryAfter)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return r.Ended.Add(time.Duration(seconds) * time.Second), true
	}
	date, err := http.ParseTime(text)
	return date, err == nil
}

// abandonSlack is how long after the client has left the server may notice.
const abandonSlack = 250 * time.Millisecond

// WaitedFor reports whether the client was still waiting for this reply when it
// sent a later one: that one overlaps it.
func (r Reply) WaitedFor(later *Send) bool {
	before := r.Ended.Sub(later.Begun)
	return before > 0 && (r.Whole || before > abandonSlack)
}
