//go:build race

package conformance_test

// seats is how many runs there are at once. The race detector makes each cost
// several times the work.
const seats = 3
