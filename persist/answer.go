package persist

import (
	"fmt"
	"net/http"
	"time"
)

// Answer is a server's answer as it is kept: bounded, and without Set-Cookie
// and whatever else looks like a credential.
type Answer struct {
	// Status is the HTTP status.
	Status int
	// Header is the kept part of the answer's header; nil if nothing was kept.
	Header http.Header
	// Body is the whole body, unless BodyDropped is set.
	Body []byte
	// BodyDropped: the body was larger than may be kept, and only Status and
	// Header are known.
	BodyDropped bool
	// Dropped are the JSON pointers of members taken out of the body before it was recorded (oncehttp.Config.DropAnswer), sorted.
	// At most AnswerDroppedMax, of AnswerDroppedBytesMax in all.
	Dropped []string
	// Replayed: the server marked it as the stored answer to an earlier send.
	Replayed bool
	// AlreadyDone: according to the server, the operation had been done before.
	AlreadyDone bool
	// Stored: the server gives this answer again for the same key, and the key protects the operation; false is the cautious
	// value. Three decisions depend on it. May the server be asked for the answer again? Is the record made durable before
	// anybody has the answer? May the answer come before the record? The journal gives it again in any case.
	Stored bool
	// At is when the answer had been read.
	At time.Time
}

// The bounds of Answer.Dropped.
const (
	AnswerDroppedMax      = 96
	AnswerDroppedBytesMax = 6144
)

// validate returns ErrInvalid if the list of the members left out of the answer's body (Dropped) is too long. a may be nil: a record without an
// answer is valid.
func (a *Answer) validate() error {
	if a == nil {
		return nil
	}
	size := 0
	for _, pointer := range a.Dropped {
		size += len(pointer)
	}
	if len(a.Dropped) > AnswerDroppedMax || size > AnswerDroppedBytesMax {
		return fmt.Errorf("%w: an answer with %d dropped members of %d bytes, want at most %d, of %d bytes in all",
			ErrInvalid, len(a.Dropped), size, AnswerDroppedMax, AnswerDroppedBytesMax)
	}
	return nil
}

// Effect returns the effect that the server states with its final answer. A 4xx is EffectRefused: the server decided against the request. The
// exception is a 4xx with AlreadyDone set: it says that the request took effect before. This and every other answer is EffectHappened.
func (a *Answer) Effect() Effect {
	if a.Status >= 400 && a.Status < 500 && !a.AlreadyDone {
		return EffectRefused
	}
	return EffectHappened
}
