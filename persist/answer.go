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
	// Stored: the server gives this answer again for the same key, which protects the operation; false is the cautious value.
	// It decides whether the server may be asked for the answer again, whether the record is made durable before anybody has
	// the answer, and whether the answer may come before the record. The journal gives it again in any case.
	Stored bool
	// At is when the answer had been read.
	At time.Time
}

// Effect returns what the final answer says: EffectRefused of a 4xx that does not say "done already", else EffectHappened.
func (a *Answer) Effect() Effect {
	if a.Status >= 400 && a.Status < 500 && !a.AlreadyDone {
		return EffectRefused
	}
	return EffectHappened
}
