package powercut

import "math/rand/v2"

// Broken is a choice not allowed by the model of [Random], for measurements of its cost. Sectors of another
// size than 512 bytes arrive by themselves. Or one page under way, of another size than 4096 bytes, holds
// anything. A size of 0 leaves the size of the model; without a page there is no junk. If order is set, all
// arrives up to a moment, and nothing after it.
func Broken(r *rand.Rand, page, sector int, order bool) Choice {
	c := Choice{r: r, one: -1, arrive: []float64{0, 0.1, 0.5, 0.9, 1}[r.IntN(5)], page: page, sector: sector, order: order}
	if page > 0 {
		c.one = r.IntN(1 << 20)
	}
	return c
}
