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
	// OutcomeUnknown: an effect is possible. Everything that is not proved is OutcomeUnknown.
	OutcomeUnknown Outcome = iota
	// OutcomeNotSent: no attempt of any process life was handed to the network.
	OutcomeNotSent
	// OutcomeRefused: the server said that it did not act.
	OutcomeRefused
	// OutcomeInFlight: the server says that an earlier attempt is still being worked on.
	OutcomeInFlight
	// OutcomeConfirmed: the server's final answer is known, whole.
	OutcomeConfirmed
	// OutcomeMismatch: the server says that the key belongs to another request.
	OutcomeMismatch
	// OutcomeExpired: the time in which the server knows the key has passed.
	OutcomeExpired
)

// String is the outcome in lower case.
func (o Outcome) String() string {
	names := [...]string{"unknown", "not sent", "refused", "in flight", "confirmed", "mismatch", "expired"}
	if int(o) >= len(names) {
		return "unknown"
	}
	return names[o]
}

// Source is where an answer comes from. The zero value says nothing.
type Source uint8

// The sources.
const (
	// SourceServer: the server answered, and did not mark the answer as a replay.
	SourceServer Source = iota + 1
	// SourceReplay: the server gave its stored answer to an earlier send.
	SourceReplay
	// SourceJournal: the answer was recorded before; nothing was sent.
	SourceJournal
)

// String is "server", "server replay" or "journal".
func (s Source) String() string {
	switch s {
	case SourceServer:
		return "server"
	case SourceReplay:
		return "server replay"
	case SourceJournal:
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
	// is one hand-over to the network; a redirect hop is a send of its own, and so
	// is the lookup that an already-done answer leads to.
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

	// Effect: Happened, Absent, or EffectUnknown, which changes nothing.
	Effect persist.Effect
	// Answer, if known, is what later calls with the key are answered.
	Answer *persist.Answer
}

// What a Resolution can say.
const (
	// EffectHappened: the operation took effect.
	EffectHappened = persist.EffectHappened
	// EffectAbsent: it did not and never will. Final: to try anew, use Key.Generation.
	EffectAbsent = persist.EffectAbsent
	// EffectUnknown: nothing could be found out; the operation stays as it is.
	EffectUnknown = persist.EffectUnknown
)
