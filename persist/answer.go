package persist

import (
	"net/http"
	"time"
)

// Answer is a server's answer as it is kept: bounded, and without Set-Cookie
// and whatever else looks like a credential.
type Answer struct {
	// Status is the HTTP status.
	Status int
	// Header holds what was kept of the answer's header; nil if nothing was.
	Header http.Header
	// Body is the whole body, unless BodyDropped is set.
	Body []byte
	// BodyDropped: the body was larger than may be kept, and only Status and
	// Header are known.
	BodyDropped bool
	// Replayed: the server marked it as the stored answer to an earlier send.
	Replayed bool
	// AlreadyDone: the server said that the operation had been done before.
	AlreadyDone bool
	// At is when the answer had been read.
	At time.Time
}
