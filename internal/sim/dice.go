package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice gives random numbers. They depend on a seed and on their purpose, not
// on the time of drawing: so they stay the same when the scheduler changes the
// order of events, and when Shrink drops other steps.
type dice uint64

// of is the generator for one purpose. Labels tell purposes apart.
func (d dice) of(label string, nth int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(d), d.hash(label, nth)))
}

// chance reports whether an event of this probability happens.
func (d dice) chance(p float64, label string, nth int) bool { return d.unit(label, nth) < p }

// unit is a number in [0, 1).
func (d dice) unit(label string, nth int) float64 {
	return float64(d.hash(label, nth)>>11) / (1 << 53)
}

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

// pick is one of the values.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// upTo is a duration in [0, most).
func upTo(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most)))
}
