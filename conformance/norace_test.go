//go:build !race

package conformance_test

// seats is how many runs there are at once.
const seats = 6
