package operation

import "time"

// UsualMargin returns the margin at the end of a window. Clients with usual time limits make no new send in it. A client with longer time limits stops before the margin;
// others can still send the operation then. It is half of a short window at most. (Invariant 43.)
func UsualMargin(window time.Duration) time.Duration {
	return min(usualAttempt+min(usualSkew, window/10), window/2)
}

// The usual time limits of a client.
const usualAttempt, usualSkew = 30 * time.Second, time.Minute

// WindowOver reports whether the window of an operation is over for everybody, at an age since its first send. At an age below zero it is over, too: such a clock cannot
// be trusted. (Invariant 8.)
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

// ClockAt returns the state of a key's window at now. first is the time of the first send. The wall clock counts: another process may send next, or this one after the
// machine was suspended. So first must have no monotonic reading. (Invariants 8 and 51.)
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

// ClockOf returns the state of the operation's key window, as ClockAt does. With a clock far behind its latest send nobody knows how old the key is: it is over then.
// (Invariants 8 and 51.)
func (c *Client) ClockOf(o *Op, now time.Time) Clock {
	if o.wasSetBack(now) {
		return OutOfWindow
	}
	return c.ClockAt(o.FirstSent, now, o.Window)
}

// Skew returns the clock error that this client allows for: ClockSkew, and at most a tenth of the window. (Invariants 8 and 51.)
func (c *Client) Skew(window time.Duration) time.Duration { return min(c.ClockSkew, window/10) }

// Margin returns the last part of a key's window, in which this client starts no send: it might arrive after the window. (Invariant 8.)
func (c *Client) Margin(window time.Duration) time.Duration {
	return c.AttemptTimeout + c.Skew(window)
}

// LatestFirstSend returns the latest time for the first send of an operation, begun at created, that its call begins to send at once, but may leave to others. It is
// as late as the last send of one sent at its begin. (Invariant 8.)
func (c *Client) LatestFirstSend(created time.Time, window time.Duration) time.Time {
	return created.Add(window - c.Margin(window))
}

// AsksAgain reports whether the server is asked again for the answer of a confirmed operation, too large to keep: while it knows the key. able: the client knows the
// profile, the request is intact, and nothing is lacking (acts.Gate). (Invariants 1, 8 and 35.)
func (c *Client) AsksAgain(o *Op, now time.Time, able bool) bool {
	return able && !c.NeverAsksAgain && c.ClockOf(o, now) == InWindow
}

// bar is the reason against a send at some moment, by the operation and the clock alone. The zero value is none.
type bar uint8

const (
	isFree        bar = iota
	isTooOld          // the time for its first send is over
	hasNoKey          // it may have been sent, and no key protects another send
	isOverHere        // its window is over for this client, and not for others
	isExpired         // its window is over
	isBeforeFirst     // the clock stands before its first send
)

// barTo returns the reason against a send now, by operation and clock alone; isFree: none, isOverHere: this client's own time limits alone. inDoubt: an attempt may have had
// an effect; without a key (Protected), one more send could have a second. (Invariants 8, 43, 49 and 51.)
func (c *Client) barTo(o *Op, inDoubt bool, now time.Time) bar {
	switch clock := c.ClockOf(o, now); {
	case !inDoubt && o.TooOld(now):
		return isTooOld
	case inDoubt && !o.Protected: // of an earlier process, or asked again for its answer
		return hasNoKey
	case clock == OutOfWindow && !WindowOver(now.Sub(o.FirstSent), o.Window) && !o.wasSetBack(now):
		return isOverHere
	case clock == OutOfWindow:
		return isExpired
	case clock == BeforeFirst:
		return isBeforeFirst
	}
	return isFree
}
