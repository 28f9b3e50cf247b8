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
