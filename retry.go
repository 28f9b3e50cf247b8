package oncehttp

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/oncehttp/oncehttp/persist"
)

// Policy bounds one run of an operation: one Do, or one operation in one Resume. A duration of
// more than 366 days is taken for one of 366.
type Policy struct {
	_ struct{}

	// MaxAttempts bounds the attempts. Zero: 6. One means no second attempt.
	MaxAttempts int
	// MaxInFlight bounds how many of the attempts may be answered "still being
	// processed" before the run stops. Zero, or more: MaxAttempts.
	MaxInFlight int
	// MaxElapsed bounds the time from the first attempt to the start of the
	// last. Zero: 2 min.
	MaxElapsed time.Duration
	// AttemptTimeout bounds the wait for an answer's headers, and then each wait
	// for more of its body, so that it never cuts a good answer that flows.
	// Zero: 30 s, or AnswerTimeout where that is shorter. At least 1 ms, at most
	// AnswerTimeout.
	AttemptTimeout time.Duration
	// AnswerTimeout bounds one attempt as a whole, from its start to the last byte
	// of the answer that the client reads itself; not the rest of an answer over
	// MaxResponseBytes, which is handed to the caller. Zero: 2 min more than
	// AttemptTimeout. At least 1 ms.
	AnswerTimeout time.Duration
	// MinDelay and MaxDelay shape the waits between attempts: uniformly random
	// from zero to MinDelay at first, the bound growing by half with each attempt
	// up to MaxDelay (full jitter). Zero: 500 ms and 30 s, or the other where that
	// is set and leaves no room.
	MinDelay, MaxDelay time.Duration
	// MaxRetryAfter bounds the Retry-After that is waited for. A longer one ends
	// the run, and Resume goes on when its time has come; one beyond the time for sends
	// (EnqueueMaxAge of what was never sent, the retention window) when that is over, and
	// holds the operation then, as persist.HoldExpired. Zero: 1 min.
	MaxRetryAfter time.Duration
	// MaxPause bounds the pause before Resume or Run goes on with an operation that
	// was tried in vain: MaxDelay after as many attempts as MaxAttempts, twice as
	// long after as many more, and so on; half of what is left of the operation's
	// time at most. The client that begins the operation writes these three into its
	// record, and every client that shares the journal keeps to them. It also bounds
	// the pause of Run before it tries an origin again that takes no connections from
	// this client; others need not wait for it. Zero: 15 min, or MaxDelay where that is longer.
	MaxPause time.Duration
	// AskFirst: before an operation in doubt is sent again, the API is asked by the
	// profile's Reference, also when the retention window is over. What is found, and
	// is the request's own, confirms the operation; something else holds it as a
	// mismatch. Nothing found leads to another send with the same key inside the
	// window. While the lookup does not tell, nothing is sent. Such a lookup counts as
	// an attempt, unless it finds nothing. For APIs whose window is short or unknown.
	// Without effect where a profile has no Reference, or no Duplicate: only an API that
	// accepts a reference once proves by it whose a resource is. Refused where that is so of
	// every profile of the client.
	AskFirst bool
}

// pauses returns the pauses as a record has them, once the defaults are filled in.
func (p *Policy) pauses() persist.Pauses {
	own := persist.Pauses{Attempts: p.MaxAttempts, First: p.MaxDelay, Most: p.MaxPause}
	if own == usualPauses {
		return persist.Pauses{}
	}
	return own
}

// usualPauses are what the zero persist.Pauses stand for. They never change: records of earlier versions mean these.
var usualPauses = persist.Pauses{Attempts: 6, First: 30 * time.Second, Most: 15 * time.Minute}

// fill sets the default of each field that is zero. Errors name the field.
func (p *Policy) fill() (err error) {
	positive(&err, "Retry.MaxAttempts", &p.MaxAttempts, defaultMaxAttempts)
	positive(&err, "Retry.MaxInFlight", &p.MaxInFlight, p.MaxAttempts)
	positive(&err, "Retry.MaxElapsed", &p.MaxElapsed, defaultMaxElapsed)
	attempt := defaultAttemptTimeout
	if p.AnswerTimeout > 0 {
		attempt = min(attempt, p.AnswerTimeout)
	}
	positive(&err, "Retry.AttemptTimeout", &p.AttemptTimeout, attempt)
	positive(&err, "Retry.AnswerTimeout", &p.AnswerTimeout, min(p.AttemptTimeout, hintMax)+defaultBodyTime)
	if p.MinDelay == 0 && p.MaxDelay > 0 {
		p.MinDelay = min(defaultMinDelay, p.MaxDelay)
	}
	positive(&err, "Retry.MinDelay", &p.MinDelay, defaultMinDelay)
	positive(&err, "Retry.MaxDelay", &p.MaxDelay, max(defaultMaxDelay, p.MinDelay))
	positive(&err, "Retry.MaxRetryAfter", &p.MaxRetryAfter, defaultMaxRetryAfter)
	positive(&err, "Retry.MaxPause", &p.MaxPause, max(defaultMaxPause, p.MaxDelay))
	for _, d := range []*time.Duration{&p.MaxElapsed, &p.AttemptTimeout, &p.AnswerTimeout, &p.MinDelay, &p.MaxDelay, &p.MaxRetryAfter, &p.MaxPause} {
		*d = min(*d, hintMax) // so that no sum of them runs out of the calendar
	}
	return err
}

// sending is how long after its first attempt a send of a run may still be on its way.
func (p *Policy) sending() time.Duration { return p.MaxElapsed + p.AnswerTimeout }

// schedule is the exponential backoff of one run, with full jitter: each wait
// is uniform between zero and a bound that grows from MinDelay to MaxDelay.
//
// backoff/v4 draws from [cur*(1-RF), cur*(1+RF)] and applies its jitter after
// its cap, so half of the bounds with a randomization factor of 1 give the
// uniform draw; nextDelay clamps it all the same. Elapsed time is bounded by
// the run, which alone knows when it began.
func newSchedule(p *Policy) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(max(p.MinDelay/2, 1)),
		backoff.WithMaxInterval(max(p.MaxDelay/2, 1)),
		backoff.WithMultiplier(1.5),
		backoff.WithRandomizationFactor(1),
		backoff.WithMaxElapsedTime(0),
	)
}

// clampDelay brings a scheduled wait between the least that the API asks for and
// the policy's greatest. backoff.Stop (-1) and anything else below zero is zero.
func clampDelay(d, least, most time.Duration) time.Duration {
	return max(min(max(d, 0), most), least)
}

// Why a run stops although another attempt might help.
var (
	errAttemptsSpent = errors.New("attempts are spent")
	errInFlightSpent = errors.New("answered as still in flight too often")
	errElapsed       = errors.New("time for attempts is spent")
	errDeadline      = errors.New("the next wait would overrun the deadline")
	errRetryAfter    = errors.New("the server asks for a longer wait than Retry.MaxRetryAfter")
	errWindow        = errors.New("the next wait would overrun the server's retention window")
	errClockBack     = errors.New("the clock stands before the first send")
	errOriginDown    = errors.New("the origin takes no connections")
)

// hintMax keeps a hint from running out of the calendar.
const hintMax = 366 * 24 * time.Hour

// plan is what is known when the next wait is chosen. All of it is data, so that
// the choice is a pure function.
type plan struct {
	policy    *Policy
	now       time.Time
	started   time.Time // of the run
	deadline  time.Time // of the caller; zero: none
	windowEnd time.Time // last moment at which a send may start
	// lastAsk is when to ask once more where the server asks for a wait beyond the
	// window; zero: the wait is not cut.
	lastAsk    time.Time
	attempts   int
	inProgress int // answers that said "still being processed", this one included
	scheduled  time.Duration
	hint       time.Duration // Retry-After; zero: none
}

// next gives the wait before the next attempt, or why there is none. notBefore,
// if set, is when it is worth going on after a stop.
func (p *plan) next() (wait time.Duration, notBefore time.Time, stop error) {
	hint := p.waitAsked()
	wait = max(p.scheduled, hint)
	at := p.now.Add(wait)
	switch {
	case hint > p.policy.MaxRetryAfter:
		return 0, at, errRetryAfter
	case p.attempts >= p.policy.MaxAttempts:
		return 0, at, errAttemptsSpent
	case p.inProgress >= p.policy.MaxInFlight && p.inProgress > 0:
		return 0, at, errInFlightSpent
	case at.Sub(p.started) > p.policy.MaxElapsed:
		return 0, at, errElapsed
	case !p.deadline.IsZero() && !at.Before(p.deadline):
		return 0, at, errDeadline
	case !at.Before(p.windowEnd):
		return 0, at, errWindow
	}
	return wait, time.Time{}, nil
}

// waitAsked is the wait that the server asks for, cut to lastAsk where it would
// outlast the window.
func (p *plan) waitAsked() time.Duration {
	hint := min(p.hint, hintMax)
	if p.now.Before(p.lastAsk) && !p.now.Add(hint).Before(p.windowEnd) {
		return p.lastAsk.Sub(p.now)
	}
	return hint
}

// deadlineBy is a deadline, which is by this process's own clock, by the clock that shows now.
func deadlineBy(now, deadline time.Time) time.Time {
	if deadline.IsZero() {
		return deadline
	}
	return now.Add(time.Until(deadline))
}
