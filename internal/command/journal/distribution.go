package journal

import (
	"math"
	"slices"
)

// distribution sums up values by buckets growing by a tenth, so its
// percentiles are right to 5 percent in flat memory. That of equal values is their value.
type distribution struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	Max float64 `json:"max"`

	counts map[int]int
	ends   map[int]ends // of the buckets of add
	total  int
	whole  bool // of addCount
}

// ends are the least and the greatest value of a bucket.
type ends struct{ least, most float64 }

// add adds a value to the distribution. Values within a tenth of each other share a bucket, so that memory stays small; all that are not above 0 share one, too.
func (d *distribution) add(v float64) {
	if d.counts == nil {
		d.counts, d.ends = map[int]int{}, map[int]ends{}
	}
	i := math.MinInt32
	if v > 0 {
		i = int(math.Floor(math.Log(v) / math.Log(1.1)))
	}
	e := ends{v, v}
	if d.counts[i] > 0 {
		e = ends{min(v, d.ends[i].least), max(v, d.ends[i].most)}
	}
	d.counts[i]++
	d.ends[i] = e
	d.total++
	d.Max = max(d.Max, v)
}

// addCount adds a whole number. Each number has a bucket of its own, so that percentiles are exact. A distribution uses add or addCount, not both.
func (d *distribution) addCount(n int) {
	d.whole = true
	if d.counts == nil {
		d.counts = map[int]int{}
	}
	d.counts[n]++
	d.total++
	d.Max = max(d.Max, float64(n))
}

// conclude computes the median and the 95th percentile for the output. It is called once, after the last value.
func (d *distribution) conclude() { d.P50, d.P95 = d.percentile(0.5), d.percentile(0.95) }

// percentile returns the value that the share p (from 0 to 1) of the values does not exceed; 0 without values. Of whole numbers (addCount) it is exact. Of others it
// is not: values within a tenth of each other are counted together.
func (d *distribution) percentile(p float64) float64 {
	left := int(math.Ceil(p * float64(d.total)))
	keys := make([]int, 0, len(d.counts))
	for i := range d.counts {
		keys = append(keys, i)
	}
	slices.Sort(keys)
	for _, i := range keys {
		if left -= d.counts[i]; left <= 0 && d.whole {
			return float64(i)
		}
		// The result is the middle of the bucket, within its least and its greatest value. MinInt32 is the bucket of values not above 0.
		if left <= 0 && i != math.MinInt32 {
			return min(max(math.Pow(1.1, float64(i)+0.5), d.ends[i].least), d.ends[i].most)
		}
		if left <= 0 {
			break
		}
	}
	return 0
}
