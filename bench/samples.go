package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// samples holds the values of one figure, one for each round.
type samples []float64

// median returns the middle value, or the mean of the two in the middle; NaN without values.
func (s samples) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// String returns the median and, with more than one round, the range; "-" without values.
func (s samples) String() string {
	switch len(s) {
	case 0:
		return "-"
	case 1:
		return number(s[0])
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.median()), number(slices.Min(s)), number(slices.Max(s)))
}

// over returns the ratios s/t round by round, as many as both have.
func (s samples) over(t samples) samples {
	out := make(samples, 0, len(s))
	for i := range min(len(s), len(t)) {
		out = append(out, s[i]/t[i])
	}
	return out
}

// minus returns the differences s-t round by round, as many as both have.
func (s samples) minus(t samples) samples {
	out := make(samples, 0, len(s))
	for i := range min(len(s), len(t)) {
		out = append(out, s[i]-t[i])
	}
	return out
}

// rounded returns the values rounded to whole numbers.
func (s samples) rounded() samples {
	out := make(samples, 0, len(s))
	for _, v := range s {
		out = append(out, math.Round(v))
	}
	return out
}

// number returns v with three significant digits at most, but all digits before the point; "-" for NaN and infinity.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case a >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
}

// percentile returns the smallest value that at least the share p (0 to 1) of all values does not exceed; zero without values.
func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

// micros returns d in microseconds.
func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
