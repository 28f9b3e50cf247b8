package powercut

import "math/rand/v2"

// Broken returns a choice of what reaches the disk at a power failure that the model of [Random] does not allow: a test counts how often the journal is
// damaged by such a disk. Sectors of the size sector arrive each by chance, in place of 512 bytes. If page is not 0, one unsynced page of that size holds
// junk. A size of 0 leaves the size of the model. If order is set, all writes up to a random moment arrive, and none after it.
func Broken(r *rand.Rand, page, sector int, order bool) Choice {
	c := Choice{r: r, one: -1, arrive: []float64{0, 0.1, 0.5, 0.9, 1}[r.IntN(5)], page: page, sector: sector, order: order}
	if page > 0 {
		c.one = r.IntN(1 << 20) // the page with junk; counted around the unsynced ones
	}
	return c
}
