package operation

import "time"

// UsualMargin is the last part of a window in which nobody of usual time limits starts a send. What is held because the window is over is so
// by this margin, whoever holds it: a client of longer time limits leaves the operation alone before, so that others can send it.
func UsualMargin(window time.Duration) time.Duration {
	const attempt, skew = 30 * time.Second, time.Minute
	return min(attempt+min(skew, window/10), window/2)
}

// WindowOver reports whether the window of an operation is over for everybody, at an age since its first send. An age below zero by more
// than the usual skew is of a clock that cannot be trusted, for which it is over.
func WindowOver(age, window time.Duration) bool {
	return age >= window-UsualMargin(window) || age < 0
}

// Clock is the state of a retention window at some moment, for one client.
type Clock uint8

const (
	// InWindow: a send may start.
	InWindow Clock = iota
	// BeforeFirst: the clock was set back a little; a send may start once it reaches the first one.
	BeforeFirst
	// OutOfWindow: it is too late, or the clock cannot be trusted.
	OutOfWindow
)

// ClockAt returns the state of the window of a key that was first sent at first. It goes by the wall clock: another process may send next,
// or this one after a suspend. So first must carry no monotonic reading.
func (c *Client) ClockAt(first, now time.Time, window time.Duration) Clock {
	age := now.Round(0).Sub(first)
	switch {
	case age < -c.Skew(window), age >= window-c.Margin(window):
		return OutOfWindow
	case age < 0:
		return BeforeFirst
	}
	return InWindow
}

// Skew returns the greatest error of the clock that counts against this window.
func (c *Client) Skew(window time.Duration) time.Duration { return min(c.ClockSkew, window/10) }

// Margin returns the last part of the window, in which this client starts no send.
func (c *Client) Margin(window time.Duration) time.Duration {
	return c.AttemptTimeout + c.Skew(window)
}
