// Package pauses computes the pauses between tries. It knows durations only.
package pauses

import "time"

// After returns the pause before the next try after n failures in a row: least
// after the first failure, twice as long after each further one, at most most. It is
// zero if n is not positive.
func After(n int, least, most time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	for ; n > 1 && least < most; n-- {
		if least > most/2 {
			return most
		}
		least *= 2
	}
	return min(least, most)
}
