package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice is a seed for random numbers. They depend on the seed and on their
// purpose (a label, and nth, a number within it), not on the time of drawing: so
// they stay the same when the scheduler changes the order of events, and when
// Shrink drops other steps.
type dice uint64

// of returns a random generator for one purpose, label and number. The same seed gives the same values for it, whatever else is drawn.
func (d dice) of(label string, nth int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(d), d.hash(label, nth)))
}

// chance reports whether an event of this probability happens, by the draw for this label and number (see unit).
func (d dice) chance(p float64, label string, nth int) bool { return d.unit(label, nth) < p }

// unit returns a random number in [0, 1) for one purpose, label and number; always the same for one seed.
func (d dice) unit(label string, nth int) float64 {
	return float64(d.hash(label, nth)>>11) / (1 << 53)
}

// hash returns 64 random bits for one purpose, label and number; always the same for one seed.
func (d dice) hash(label string, nth int) uint64 {
	h := fnv.New64a()
	var b [16]byte
	for i := range 8 {
		b[i], b[8+i] = byte(uint64(d)>>(8*i)), byte(uint64(nth)>>(8*i))
	}
	h.Write(b[:])
	h.Write([]byte(label))
	x := h.Sum64() // FNV alone is poor in its high bits; mix as splitmix64 does
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// pick returns one of the values, at least one, with equal probability.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// upTo returns a duration in [0, most); most must be positive.
func upTo(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most)))
}
