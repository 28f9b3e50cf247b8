package oncehttp

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/oncehttp/oncehttp/internal/operation"
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
	if own == operation.UsualPauses {
		return persist.Pauses{}
	}
	return own
}

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
	positive(&err, "Retry.AnswerTimeout", &p.AnswerTimeout, min(p.AttemptTimeout, operation.HintMax)+defaultBodyTime)
	if p.MinDelay == 0 && p.MaxDelay > 0 {
		p.MinDelay = min(defaultMinDelay, p.MaxDelay)
	}
	positive(&err, "Retry.MinDelay", &p.MinDelay, defaultMinDelay)
	positive(&err, "Retry.MaxDelay", &p.MaxDelay, max(defaultMaxDelay, p.MinDelay))
	positive(&err, "Retry.MaxRetryAfter", &p.MaxRetryAfter, defaultMaxRetryAfter)
	positive(&err, "Retry.MaxPause", &p.MaxPause, max(defaultMaxPause, p.MaxDelay))
	for _, d := range []*time.Duration{&p.MaxElapsed, &p.AttemptTimeout, &p.AnswerTimeout, &p.MinDelay, &p.MaxDelay, &p.MaxRetryAfter, &p.MaxPause} {
		*d = min(*d, operation.HintMax) // so that no sum of them runs out of the calendar
	}
	return err
}

// driveLimits returns the limits of a drive.
func (c *Config) driveLimits() operation.Client {
	return operation.Client{
		MaxAttempts: c.Retry.MaxAttempts, MaxInFlight: c.Retry.MaxInFlight, MaxElapsed: c.Retry.MaxElapsed, AttemptTimeout: c.Retry.AttemptTimeout,
		MaxDelay: c.Retry.MaxDelay, MaxRetryAfter: c.Retry.MaxRetryAfter, ClockSkew: c.ClockSkew,
	}
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

// stopErrors are the errors that say why a drive has stopped. Of those that are missing, the run knows the cause.
var stopErrors = map[operation.Stop]error{
	operation.AttemptsSpent:  errors.New("attempts are spent"),
	operation.InFlightSpent:  errors.New("answered as still in flight too often"),
	operation.ElapsedSpent:   errors.New("time for attempts is spent"),
	operation.DeadlineNear:   errors.New("the next wait would overrun the deadline"),
	operation.LongRetryAfter: errors.New("the server asks for a longer wait than Retry.MaxRetryAfter"),
	operation.WindowNear:     errors.New("the next wait would overrun the server's retention window"),
	operation.ClockBack:      errors.New("the clock stands before the first send"),
	operation.OriginDown:     errors.New("the origin takes no connections"),
	operation.TooOld:         errMaxAge,
	operation.WindowHere: errors.New("the retention window leaves no time for this client's AttemptTimeout and ClockSkew; " +
		"a client with shorter ones may send it"),
}

var errMaxAge = errors.New("it was not sent within EnqueueMaxAge")

// stopped returns the error that says why the run has stopped, nil if its drive was not stopped.
func (r *run) stopped() error {
	switch stop := r.drive.Stop(); stop {
	case operation.GivenUp:
		return r.gaveUp
	case operation.Unsure, operation.JournalFailed:
		return r.failed
	default:
		return stopErrors[stop]
	}
}

// deadlineBy is a deadline, which is by this process's own clock, by the clock that shows now.
func deadlineBy(now, deadline time.Time) time.Time {
	if deadline.IsZero() {
		return deadline
	}
	return now.Add(time.Until(deadline))
}
