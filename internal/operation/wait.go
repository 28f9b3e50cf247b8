package operation

import "time"

// HintMax bounds a wait that a server asks for, so that no sum of times runs out of the calendar.
const HintMax = 366 * 24 * time.Hour

// Plan is all that the choice of the next wait depends on.
type Plan struct {
	Client    *Client
	Now       time.Time
	Started   time.Time // of the drive
	Deadline  time.Time // of the caller; zero: none
	WindowEnd time.Time // last moment at which a send may start
	// LastAsk is the time of one more attempt where the server asks for a wait beyond the window; zero: the wait is not cut.
	LastAsk   time.Time
	Attempts  int
	InFlight  int // answers that said "still being processed", with the last
	Scheduled time.Duration
	Hint      time.Duration // Retry-After; zero: none
}

// Next returns the wait before the next attempt, or the reason why there is none. notBefore is the time at which it is worth going on
// after a stop.
func (p *Plan) Next() (wait time.Duration, notBefore time.Time, stop Stop) {
	hint := p.waitAsked()
	wait = max(p.Scheduled, hint)
	at := p.Now.Add(wait)
	switch {
	case hint > p.Client.MaxRetryAfter:
		stop = LongRetryAfter
	case p.Attempts >= p.Client.MaxAttempts:
		stop = AttemptsSpent
	case p.InFlight >= p.Client.MaxInFlight && p.InFlight > 0:
		stop = InFlightSpent
	case at.Sub(p.Started) > p.Client.MaxElapsed:
		stop = ElapsedSpent
	case !p.Deadline.IsZero() && !at.Before(p.Deadline):
		stop = DeadlineNear
	case !at.Before(p.WindowEnd):
		stop = WindowNear
	default:
		return wait, time.Time{}, GoesOn
	}
	return 0, at, stop
}

// waitAsked returns the wait that the server asks for, cut to LastAsk where it would outlast the window.
func (p *Plan) waitAsked() time.Duration {
	hint := min(p.Hint, HintMax)
	if p.Now.Before(p.LastAsk) && !p.Now.Add(hint).Before(p.WindowEnd) {
		return p.LastAsk.Sub(p.Now)
	}
	return hint
}

// ClampDelay brings a scheduled wait between the least that the API asks for and the policy's greatest. backoff.Stop (-1) and anything
// else below zero is zero.
func ClampDelay(d, least, most time.Duration) time.Duration { return max(min(max(d, 0), most), least) }
