//go:build race

package conformance_test

// seats is how many runs there are at once, and thinning which part of a long
// table is run: the race detector makes each run cost several times the work.
const (
	seats    = 3
	thinning = 5
)
