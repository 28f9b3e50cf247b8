package oncehttp

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/run"
)

// Policy bounds one run of an operation: one Do, or one operation of one Resume. A duration over 366
// days counts as 366 days.
type Policy struct {
	_ struct{}

	// MaxAttempts bounds the attempts. Zero: 6. One means no second attempt. A run also ends after three equal
	// answers of 500 in a row, since the API may keep such an answer under the key.
	MaxAttempts int
	// MaxInFlight bounds the attempts answered with "still being processed"; then the run ends. Zero, or
	// more: MaxAttempts.
	MaxInFlight int
	// SafeAttempts bounds the attempts of a request of Do that is no operation and has a method
	// that is safe or idempotent by definition: see Client.Do. Such a request is not journaled; the
	// other bounds of the Policy count for it, too. Zero: MaxAttempts. One means no second attempt.
	// Without effect on Transport and StandardClient, which send such a request once.
	SafeAttempts int
	// MaxElapsed bounds the time from the first attempt to the start of the last. Zero: 2 min.
	MaxElapsed time.Duration
	// AttemptTimeout bounds the wait for an answer's headers, and then each wait for more of its body, so
	// that it never cuts a flowing answer. Zero: 30 s, or AnswerTimeout if that is shorter. At least 1 ms,
	// at most AnswerTimeout.
	AttemptTimeout time.Duration
	// AnswerTimeout bounds one attempt as a whole, from its start to the last byte of the answer read by the
	// client itself; not the rest of an answer over MaxResponseBytes, which the caller reads. Zero: 2 min
	// more than AttemptTimeout. At least 1 ms.
	AnswerTimeout time.Duration
	// MinDelay and MaxDelay shape the waits between attempts: uniformly random from zero to a bound (full
	// jitter). The bound is MinDelay at first, and grows by half with each attempt, up to MaxDelay. Zero:
	// 500 ms and 30 s, or the other one if that is set and leaves no room.
	MinDelay, MaxDelay time.Duration
	// MaxRetryAfter bounds the wait for a Retry-After. A longer one ends the run, and Resume goes on at its
	// time. If that is after the time for sends (EnqueueMaxAge before the first send, then the retention
	// window), Resume holds the operation at the end of that time (persist.HoldExpired). Zero: 1 min.
	MaxRetryAfter time.Duration
	// MaxPause bounds the pause before Resume or Run goes on with an operation after a failed run. The pause
	// is MaxDelay after MaxAttempts attempts, twice as long after as many more, and so on; at most half of
	// the operation's remaining time. The client that begins the operation writes these three into its
	// record, and every client of the journal keeps to them. MaxPause also bounds this client's pause before
	// Run tries an origin again that accepts no connections; other clients need not wait. Zero: 15 min, or
	// MaxDelay if that is longer.
	MaxPause time.Duration
	// AskFirst: before another send of an operation in doubt, the API is asked by the profile's Reference,
	// also after the retention window. If the API has the request's own resource, the operation is confirmed;
	// another resource holds it as a mismatch. If the API has none, the same key is sent again inside the
	// window. Without a clear answer nothing is sent. A lookup counts as an attempt, unless it finds nothing.
	// It is for APIs with a short or unknown window. It has no effect for a profile without a Reference, or
	// without a Duplicate: only an API that accepts a reference once proves the owner of a resource by it.
	// New refuses it if that holds for every profile of the client.
	AskFirst bool
	// NeverAskAgain: a confirmed operation whose answer could not be kept whole (over MaxResponseBytes or MaxResponseHeaderBytes, or no JSON
	// beside DropAnswer) is not sent again to get that answer. A later call gets
	// ErrFinal and ErrAnswerGone, with the status. False: it is sent again under its key, inside the window; at a server that has
	// forgotten the key, or ignores it, that takes effect once more. Set it where the answer is worth less than that risk.
	NeverAskAgain bool
}

// inner converts the Policy for package run.
func (p *Policy) inner() run.Policy {
	return run.Policy{
		MaxAttempts: p.MaxAttempts, MaxInFlight: p.MaxInFlight, SafeAttempts: p.SafeAttempts, MaxElapsed: p.MaxElapsed, AttemptTimeout: p.AttemptTimeout,
		AnswerTimeout: p.AnswerTimeout, MinDelay: p.MinDelay, MaxDelay: p.MaxDelay, MaxRetryAfter: p.MaxRetryAfter,
		MaxPause: p.MaxPause, AskFirst: p.AskFirst, NeverAskAgain: p.NeverAskAgain,
	}
}
