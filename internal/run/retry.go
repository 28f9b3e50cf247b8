package run

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// Policy has the fields of oncehttp.Policy; see its documentation there.
type Policy struct {
	// MaxAttempts bounds the attempts of a run.
	MaxAttempts int
	// MaxInFlight bounds the answers "still being processed" of a run.
	MaxInFlight int
	// SafeAttempts bounds the attempts of a request that is no operation; see streamed.
	SafeAttempts int
	// MaxElapsed bounds the time from the first attempt of a run to the start of its last.
	MaxElapsed time.Duration
	// AttemptTimeout bounds each wait for the server within an attempt.
	AttemptTimeout time.Duration
	// AnswerTimeout bounds an attempt as a whole. With it a record says how long a send may be on its way: see sending.
	AnswerTimeout time.Duration
	// MinDelay and MaxDelay bound the waits between attempts. MaxDelay is also the first pause after a run.
	MinDelay, MaxDelay time.Duration
	// MaxRetryAfter bounds the wait for a Retry-After within a run. After a longer one a pass goes on.
	MaxRetryAfter time.Duration
	// MaxPause bounds the pause between two runs.
	MaxPause time.Duration
	// AskFirst asks the API by the profile's Reference before another send in doubt.
	AskFirst bool
	// NeverAskAgain forbids another send for an answer that was not kept whole.
	NeverAskAgain bool
}

// pauses returns the pauses between runs for a record, once the defaults are filled in; zero if they are the usual ones, which a record without pauses has.
func (p *Policy) pauses() persist.Pauses {
	own := persist.Pauses{Attempts: p.MaxAttempts, First: p.MaxDelay, Most: p.MaxPause}
	if own == operation.UsualPauses {
		return persist.Pauses{}
	}
	return own
}

// fill sets the default of each zero field. A default gives way to a field that the user has set: it does not contradict it. Errors name the field.
func (p *Policy) fill() (err error) {
	positive(&err, "Retry.MaxAttempts", &p.MaxAttempts, defaultMaxAttempts)
	positive(&err, "Retry.MaxInFlight", &p.MaxInFlight, p.MaxAttempts)
	positive(&err, "Retry.MaxElapsed", &p.MaxElapsed, defaultMaxElapsed)
	positive(&err, "Retry.SafeAttempts", &p.SafeAttempts, p.MaxAttempts)
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
		*d = min(*d, operation.HintMax) // to keep every sum of them within the calendar
	}
	return err
}

// driveLimits returns the parts of the Config that bound a run, for operation.Drive, which decides about it.
func driveLimits(c *Config) operation.Client {
	return operation.Client{
		MaxAttempts: c.Retry.MaxAttempts, MaxInFlight: c.Retry.MaxInFlight, MaxElapsed: c.Retry.MaxElapsed, AttemptTimeout: c.Retry.AttemptTimeout,
		MaxDelay: c.Retry.MaxDelay, MaxRetryAfter: c.Retry.MaxRetryAfter, ClockSkew: c.ClockSkew, NeverAsksAgain: c.Retry.NeverAskAgain,
	}
}

// sending returns the longest time from a run's first attempt to the end of a send on its way.
func (p *Policy) sending() time.Duration { return p.MaxElapsed + p.AnswerTimeout }

// newSchedule returns the exponential backoff of one run, with full jitter: each wait
// is uniform between zero and a bound growing from MinDelay to MaxDelay.
//
// backoff/v4 draws from [cur*(1-RF), cur*(1+RF)] and applies its jitter after
// its cap. So half of the bounds with a randomization factor of 1 give the
// uniform draw; operation.ClampDelay clamps it all the same. Elapsed time is bounded by
// the run: only the run knows the time of its begin.
func newSchedule(p *Policy) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(max(p.MinDelay/2, 1)),
		backoff.WithMaxInterval(max(p.MaxDelay/2, 1)),
		backoff.WithMultiplier(1.5),
		backoff.WithRandomizationFactor(1),
		backoff.WithMaxElapsedTime(0),
	)
}

// stopErrors are the errors for the reasons of a drive's stop. For the missing ones, the run knows the cause.
var stopErrors = map[operation.Stop]error{
	operation.AttemptsSpent: errors.New("attempts are spent"),
	operation.InFlightSpent: errors.New("answered as still in flight too often"),
	operation.ErrorRepeats: errors.New("three equal errors (500), which the API may keep under the key and give until it forgets that; look for the effect, since a new key may " +
		"act twice"),
	operation.ElapsedSpent:   errors.New("time for attempts is spent"),
	operation.DeadlineNear:   errors.New("the next wait would overrun the deadline"),
	operation.LongRetryAfter: errors.New("the server asks for a longer wait than Retry.MaxRetryAfter"),
	operation.WindowNear:     errors.New("the next wait would overrun the server's retention window"),
	operation.ClockBack:      errors.New("the clock is before the first send"),
	operation.OriginDown:     errors.New("the origin takes no connections"),
	operation.TooOld:         errMaxAge,
	operation.WindowHere: errors.New("the retention window leaves no time for this client's AttemptTimeout and ClockSkew; " +
		"a client with shorter ones may send it"),
}

var errMaxAge = errors.New("it was not sent within EnqueueMaxAge")

// deadlineBy converts a deadline from this process's clock to the journal's clock, which shows now. The two may differ. A zero deadline stays zero.
func deadlineBy(now, deadline time.Time) time.Time {
	if deadline.IsZero() {
		return deadline
	}
	return now.Add(time.Until(deadline))
}

// patience returns the longest time in one function of the Config, the Transport included, before a wait for the call gives up. An attempt
// ended by its own timeout is over before.
func (p *Policy) patience() time.Duration { return p.AttemptTimeout + p.AttemptTimeout/8 }
