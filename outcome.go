package oncehttp

import (
	"context"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Outcome is what is known of an operation. The zero value is the cautious one.
type Outcome uint8

// The outcomes, and what proves each.
const (
	// Unknown: an effect is possible. Everything that is not proved is Unknown.
	Unknown Outcome = iota
	// NotSent: no attempt of any process life was handed to the network.
	NotSent
	// Refused: the server said that it did not act.
	Refused
	// InFlight: the server says that an earlier attempt is still being worked on.
	InFlight
	// Confirmed: the server's final answer is known, whole.
	Confirmed
	// Conflict: the server says that the key belongs to another request.
	Conflict
	// Expired: the time in which the server knows the key has passed.
	Expired
)

// String is the outcome in lower case.
func (o Outcome) String() string {
	names := [...]string{"unknown", "not sent", "refused", "in flight", "confirmed", "conflict", "expired"}
	if int(o) >= len(names) {
		return "unknown"
	}
	return names[o]
}

// Source is where an answer comes from. The zero value says nothing.
type Source uint8

// The sources.
const (
	// FromServer: the server answered, and did not mark the answer as a replay.
	FromServer Source = iota + 1
	// FromServerReplay: the server gave its stored answer to an earlier send.
	FromServerReplay
	// FromJournal: the answer was recorded before; nothing was sent.
	FromJournal
)

// String is "server", "server replay" or "journal".
func (s Source) String() string {
	switch s {
	case FromServer:
		return "server"
	case FromServerReplay:
		return "server replay"
	case FromJournal:
		return "journal"
	}
	return ""
}

// Result says how an operation came to its answer.
type Result struct {
	_ struct{}

	Key     Key
	Outcome Outcome
	Source  Source
	// Attempts and Sends count over the whole life of the operation, the
	// attempts of processes that died without recording theirs left out. A send
	// is one hand-over to the network; a redirect hop is a send of its own.
	Attempts, Sends int
	// FirstSent is when the first send began.
	FirstSent time.Time
	// AlreadyDone: the server said that the operation had been done before.
	AlreadyDone bool
	// Answer is the recorded answer. Only Resume sets it; a response of Do
	// carries its own body.
	Answer *persist.Answer
}

type resultKey struct{}

// resultContext is the context of a response's request, with the result in it.
type resultContext struct {
	context.Context
	result Result
}

func (c *resultContext) Value(key any) any {
	if key == (resultKey{}) {
		return &c.result
	}
	return c.Context.Value(key)
}

// ResultOf says how resp, a response of Do, DoKey or a Transport, came about.
// The zero Result means that resp is not of a journaled operation.
func ResultOf(resp *http.Response) Result {
	if resp == nil || resp.Request == nil {
		return Result{}
	}
	if r, ok := resp.Request.Context().Value(resultKey{}).(*Result); ok {
		return *r
	}
	return Result{}
}

// Resolution is what somebody, or a Reconcile function, found out about an
// operation in doubt.
type Resolution struct {
	_ struct{}

	// Effect: Happened, Absent, or StillUnknown, which changes nothing.
	Effect persist.Effect
	// Answer, if known, is what later calls with the key are answered.
	Answer *persist.Answer
}

// What a Resolution can say.
const (
	// Happened: the operation took effect.
	Happened = persist.EffectHappened
	// Absent: it did not and never will. Final: to try anew, use Key.Generation.
	Absent = persist.EffectAbsent
	// StillUnknown: nothing could be found out; the operation stays as it is.
	StillUnknown = persist.EffectUnknown
)
