//go:build !race

package conformance_test

// seats is how many runs there are at once, and thinning which part of a long
// table is run: all of it.
const (
	seats    = 6
	thinning = 1
)
