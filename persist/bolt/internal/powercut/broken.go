package powercut

import "math/rand/v2"

// Broken is a choice that the model of [Random] does not allow, for measurements of what that costs: sectors arrive by
// themselves that have another size than 512 bytes, or one page that is under way holds anything that has another size than
// 4096 bytes. Where a size is 0, it is as the model has it; without a page there is no junk. If order is set, all arrives up
// to a moment, and nothing after that.
func Broken(r *rand.Rand, page, sector int, order bool) Choice {
	c := Choice{r: r, one: -1, arrive: []float64{0, 0.1, 0.5, 0.9, 1}[r.IntN(5)], page: page, sector: sector, order: order}
	if page > 0 {
		c.one = r.IntN(1 << 20)
	}
	return c
}
