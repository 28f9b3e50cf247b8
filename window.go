package oncehttp

import "time"

// windowState is where a moment lies in a key's retention window.
type windowState uint8

const (
	windowOpen   windowState = iota
	windowBefore             // the clock was set back a little: wait until first
	windowOver               // too late, or the clock cannot be trusted
)

// window says whether a key first sent at first may be sent at now, by the wall
// clock: whoever sends next may be another process, or this one after a suspend.
// So first must carry no monotonic reading.
func (c *Config) window(first, now time.Time, window time.Duration) windowState {
	age := now.Round(0).Sub(first)
	switch {
	case age < -c.skew(window), age >= window-c.margin(window):
		return windowOver
	case age < 0:
		return windowBefore
	}
	return windowOpen
}

// skew is how far the clock may be off against this window.
func (c *Config) skew(window time.Duration) time.Duration { return min(c.ClockSkew, window/10) }

// margin is how long before the window's end nothing is sent any more.
func (c *Config) margin(window time.Duration) time.Duration {
	return c.Retry.AttemptTimeout + c.skew(window)
}
