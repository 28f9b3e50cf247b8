package operation

import "time"

// HintMax bounds a server's wait: no sum of times runs out of the calendar.
const HintMax = 366 * 24 * time.Hour

// ErrorsMax is the number of equal errors (500) of the API's own in a row that end a drive: the API may keep the error under the key, and give it to each send until it
// forgets the key. The operation stays pending.
const ErrorsMax = 3

// schedule holds the wait before the next attempt of a drive, or the reason against that attempt.
type schedule struct {
	stop    Stop
	limited bool          // the limiter takes long, see Limited
	atOnce  bool          // the next attempt has other credentials, and does not wait for the schedule
	hint    time.Duration // the latest answer's wait
	wait    time.Duration // before the next attempt
	next    time.Time     // the earliest useful time after a stop
}

// Wait returns the time to wait before the next attempt, for the step Wait.
func (s *schedule) Wait() time.Duration { return s.wait }

// Stop returns the reason why the attempts ended although another one might help; GoesOn if there is none.
func (s *schedule) Stop() Stop { return s.stop }

// Plan holds everything behind the choice of the next wait.
type Plan struct {
	Client    *Client
	Now       time.Time
	Started   time.Time // of the drive
	Deadline  time.Time // of the caller; zero: none
	WindowEnd time.Time // last moment for the start of a send
	// LastAsk is the time of one more attempt if the server's wait ends beyond the window; zero: the wait is not cut.
	LastAsk   time.Time
	Attempts  int
	InFlight  int // answers that said "still being processed", with the last
	Errors    int // equal errors in a row that the API may keep under the key
	Scheduled time.Duration
	Hint      time.Duration // Retry-After; zero: none
}

// Next returns the wait before the next attempt, or the first reason to stop that holds. notBefore is then the time at which that attempt would have been due: a later
// call or pass need come no sooner. InFlight counts the answers "in progress" so far. (Invariants 28, 48 and 59.)
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
	case p.Errors >= ErrorsMax:
		stop = ErrorRepeats
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

// waitAsked returns the wait asked by the server (Retry-After). One beyond the key's window is cut to LastAsk, if set: one more attempt is made in time. (Invariant 28.)
func (p *Plan) waitAsked() time.Duration {
	hint := min(p.Hint, HintMax)
	if p.Now.Before(p.LastAsk) && !p.Now.Add(hint).Before(p.WindowEnd) {
		return p.LastAsk.Sub(p.Now)
	}
	return hint
}

// lastAsk returns the time of one more attempt if the server's wait ends beyond the window: the begin of the window's last tenth or, within that tenth, half of it later.
// end is the window's. An operation due exactly at the begin of the tenth has had its one more attempt. (Invariant 28.)
func lastAsk(now, due, end time.Time, window time.Duration) time.Time {
	first := end.Add(-window / 10)
	if now.Before(first) || due.Equal(first) {
		return first
	}
	return end.Add(-window / 20)
}

// ClampDelay brings a scheduled wait between the API's least and the policy's greatest wait. backoff.Stop (-1) and anything else below zero is zero. (Invariant 16.)
func ClampDelay(d, least, most time.Duration) time.Duration { return max(min(max(d, 0), most), least) }
