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

// Send is one request that has arrived whole. It does not change afterwards. The
// server makes one; methods of a zero Send may panic.
type Send struct {
	// Key is the idempotency key; empty: there is none, or an invalid one.
	Key string
	// Keyed: there is a key, valid or not.
	Keyed bool
	// Honoured: the API honours keys on this method at this path.
	Honoured bool
	// KeyError is the error of an invalid key, without the key; empty: the key is
	// valid or missing.
	KeyError string
	// Operation identifies the operation: the value at OperationPointer (empty if
	// the body has none), or the key if no pointer is configured.
	Operation string
	// Method and Path are the request's.
	Method, Path string
	// Fingerprint is the SHA-256 of target, content type and body: equal
	// requests have equal ones.
	Fingerprint [32]byte
	// FirstSent is the request's header with the time of the operation's first send (profile.FirstSent), as it came; empty:
	// there is none, or the profile has no such header.
	FirstSent string
	// Connection identifies the client's connection; empty: unknown.
	Connection string
	// Difference says where the request differs from the first one with its key:
	// names, lengths and places, no values. Empty: it is equal.
	Difference string
	// Begun is the time at which the whole request had arrived.
	Begun time.Time

	context context.Context // the request's: it ends when the client leaves
}

// Waiting reports whether the client that sent this request is still connected, as far as the server knows. It may be called at any time.
func (s *Send) Waiting() bool { return s.context.Err() == nil }

// HasRead reports whether the client that sent s is known to have read the answer to an earlier send: s came on the
// same connection, and a client of HTTP/1.1 uses a connection again only after it has read the answer before.
// Otherwise a server cannot know it: a client may have been killed just after the answer was written.
func (s *Send) HasRead(earlier *Send) bool {
	return s.Connection != "" && s.Connection == earlier.Connection
}

// Reply is how a send ended.
type Reply struct {
	// Status is that of the answer; 0: there was none.
	Status int
	// Whole: all of the answer was written to a connected client. The client may
	// still not have read it.
	Whole bool
	// Cut: the server cut the answer's body off.
	Cut bool
	// RetryAfter is the Retry-After header as it was sent; empty: none.
	RetryAfter string
	// BodyWait is the longest wait that the body asks for (profile.RetryAfter); zero: none.
	BodyWait time.Duration
	// Advised: the answer advises against another attempt, in the profile's
	// spelling (ShouldRetry).
	Advised bool
	// Replay: the answer came from the store, or is marked as a replay.
	Replay bool
	// Mismatch: the answer says that the key belongs to another request.
	Mismatch bool
	// InProgress: the answer says that the first request is being handled.
	InProgress bool
	// Ended is the time just before the server wrote the last of the answer, or
	// cut the connection. A send that follows the answer begins later.
	Ended time.Time
}

// String describes the reply, such as "a 503", "no answer".
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

// Final reports whether the answer settles the operation, so that another send is a waste: a success, most 4xx, or an error that the server advises
// not to try again (Advised). inDoubt: an answer before it was lost; after that a 4xx settles nothing, since the first send may have had its effect.
func (r Reply) Final(inDoubt bool) bool {
	switch {
	case r.Status >= 200 && r.Status < 300, r.Advised:
		return true
	case r.Status < 400 || r.Status >= 500 || inDoubt:
		return false
	}
	again := []int{401, 403, 407, 408, 409, 421, 423, 424, 425, 429} // another send may be answered otherwise
	return !slices.Contains(again, r.Status)
}

// NotBefore returns the earliest time for the next send by Retry-After (seconds,
// or one of the three date formats of RFC 9110) and by BodyWait: the later of
// both. False: there is no hint, or an unreadable one.
func (r Reply) NotBefore() (time.Time, bool) {
	at, found := r.afterHeader()
	if byBody := r.Ended.Add(r.BodyWait); r.BodyWait > 0 && (!found || byBody.After(at)) {
		return byBody, true
	}
	return at, found
}

// afterHeader returns the time until which the reply's Retry-After header asks the client to wait; false if it has none that can
// be read.
func (r Reply) afterHeader() (time.Time, bool) {
	text := strings.TrimSpace(r.RetryAfter)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return r.Ended.Add(time.Duration(seconds) * time.Second), true
	}
	date, err := http.ParseTime(text)
	return date, err == nil
}

// abandonSlack bounds the time after which a server notices that the client left.
const abandonSlack = 250 * time.Millisecond

// WaitedFor reports whether the client still waited for this reply when it sent later, so that the two sends overlap. An answer that did not get
// through counts only with an overlap over abandonSlack: the client may have given up just before.
func (r Reply) WaitedFor(later *Send) bool {
	overlap := r.Ended.Sub(later.Begun)
	return overlap > 0 && (r.Whole || overlap > abandonSlack)
}
