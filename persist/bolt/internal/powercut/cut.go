package powercut

import (
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
)

// Choice selects the changes under way that arrive when the power fails.
type Choice struct {
	r      *rand.Rand
	arrive float64 // the part of the sectors arriving
	whole  bool    // pages arrive as a whole, or not
	order  bool    // in the order of the writes: nothing arrives after a certain place
	gap    bool    // all but the writes from one place to another
	stale  bool    // all but the last write to places written several times
	junk   float64 // the part of the pages arriving as anything
	one    int     // of the pages under way only this one is junk; -1: as junk says
	// Pages of another size than 4096 bytes, and sectors smaller than 512: for measurements of their cost.
	page, sector int
}

// Random returns a choice, drawn by r, of the unsynced writes that reach the disk at a power failure, out of the kinds worth a test. Nothing arrives,
// everything, or a part (arrive) by sectors, or by whole pages. There is junk or none, and the order is any or that of the writes. Or all arrives but some
// writes following each other (gap). Or one page alone is junk (one; -1 is none). Or, at places written several times, an earlier write arrives (stale). The
// constants only say how often each kind comes, and how much of it.
func Random(r *rand.Rand) Choice {
	if r.IntN(8) == 0 {
		return Choice{r: r, one: -1, arrive: 1, stale: true, whole: r.IntN(2) == 0}
	}
	c := Choice{r: r, one: -1, arrive: []float64{0, 1, 1, 0.5, 0.9, 0.1}[r.IntN(6)]}
	c.whole, c.order, c.gap = r.IntN(3) == 0, r.IntN(4) == 0, r.IntN(6) == 0
	switch r.IntN(4) {
	case 0:
		c.junk = []float64{0.1, 0.5, 1}[r.IntN(3)]
	case 1:
		c.one, c.arrive = r.IntN(1<<20), []float64{0, 1, 0.5}[r.IntN(3)]
	}
	return c
}

// Cut returns one possible content of the disk after a power failure at this moment. Changes of names that were not synced arrive or not, and so do writes to
// files, as the choice draws it. Two names of one file get one content.
func (d *Disk) Cut(c Choice) Files {
	names := maps.Clone(d.durable)
	for i := range d.moves {
		if c.arrives() {
			d.moves[i].apply(names)
		}
	}
	files, cut := Files{}, map[*file][]byte{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		if _, done := cut[f]; !done {
			cut[f] = f.cut(c)
		}
		files[name] = cut[f]
	}
	return files
}

// arrives draws by chance, with the probability of the choice, that one write reaches the disk, and returns the result.
func (c *Choice) arrives() bool { return c.r.Float64() < c.arrive }

// cut returns one possible content of a file after a power failure. The synced content is there. Of the unsynced writes (flight), whole sectors or pages
// arrive or not: in the order of the writes, all but a gap, all but the last write to a unit, or each by chance, as the choice says. memory is the content
// after each write as the kernel has it; what arrives of it is copied into arrived. In the end pages that were being written may hold junk.
func (f *file) cut(c Choice) []byte {
	if len(f.flight) == 0 {
		return f.disk
	}
	page, sector := int64(pageSize), int64(sectorSize)
	if c.page > 0 {
		page = int64(c.page)
	}
	if c.sector > 0 {
		sector = int64(c.sector)
	}
	if c.whole {
		sector = page
	}
	flight, gap, end := f.flight, 0, 0
	if c.order {
		flight = flight[:c.r.IntN(len(flight)+1)]
	}
	if c.gap {
		gap, end = c.gapIn(len(flight))
	}
	stale := map[int64]int{} // the last write to a unit with an earlier one
	if c.stale {
		stale = f.rewritten(sector)
	}
	memory, arrived, size := slices.Clone(f.disk), slices.Clone(f.disk), int64(len(f.disk))
	for i, v := range flight {
		memory = resized(memory, max(v.size, v.at+int64(len(v.data))))
		copy(memory[v.at:], v.data)
		arrived = resized(arrived, max(int64(len(arrived)), int64(len(memory))))
		if v.sizes && (c.order || c.arrives()) {
			if size = v.size; size < int64(len(arrived)) {
				clear(arrived[size:])
			}
		}
		// A unit arrives with all earlier writes to it.
		v.touched(sector, func(from, to int64) {
			if last, found := stale[from/sector]; found && last == i {
				return
			}
			if c.gap && (i < gap || i >= end) || !c.gap && (c.order || c.arrives()) {
				copy(arrived[from:to], memory[from:to])
			}
		})
	}
	c.spoil(f, arrived, page)
	return resized(arrived, size)
}

// rewritten returns the units (sectors or pages) that were written several times since the last sync. It maps the number of each to the index of its
// last write. unit is their length in bytes.
func (f *file) rewritten(unit int64) map[int64]int {
	times, last := map[int64]int{}, map[int64]int{}
	for i, v := range f.flight {
		v.touched(unit, func(from, _ int64) {
			times[from/unit]++
			last[from/unit] = i
		})
	}
	maps.DeleteFunc(last, func(at int64, _ int) bool { return times[at] < 2 })
	return last
}

// gapIn draws the part of n writes that does not arrive, from the index from up to before to. Often it begins with the first write, or ends before
// the last.
func (c *Choice) gapIn(n int) (from, to int) {
	from = c.r.IntN(n + 1)
	if c.r.IntN(2) == 0 {
		from = 0
	}
	to = from + c.r.IntN(n-from+1)
	if c.r.IntN(2) == 0 {
		to = n - 1
	}
	return from, to
}

// spoil replaces the content of some pages of b that were written and not synced: by zeros, by random bytes in whole or in part, or by the content of another
// page. A disk may leave such junk if the power fails during a write. Each page is spoiled with the probability junk, or, if one is not negative, only the
// page of that number, counted around. page is the size of a page.
func (c *Choice) spoil(f *file, b []byte, page int64) {
	if c.junk == 0 && c.one < 0 {
		return
	}
	touched := map[int64]bool{}
	for _, v := range f.flight {
		v.touched(page, func(from, _ int64) { touched[from/page] = true })
	}
	pages := slices.Sorted(maps.Keys(touched))
	for i, p := range pages {
		if c.one >= 0 && i != c.one%len(pages) || c.one < 0 && c.r.Float64() >= c.junk || p*page >= int64(len(b)) {
			continue
		}
		at := b[p*page : min((p+1)*page, int64(len(b)))]
		switch c.r.IntN(5) {
		case 4: // some bytes of it
			from := c.r.IntN(len(at))
			if c.r.IntN(2) == 0 {
				from %= 128
			}
			for i := range at[from:min(len(at), from+1+c.r.IntN(64))] {
				at[from+i] = byte(c.r.Uint32())
			}
		case 0:
			clear(at)
		case 1: // the content of another page
			copy(at, b[int64(c.r.IntN(len(b)/int(page)+1))*page:])
		case 2: // the beginning only
			for i := range at[:c.r.IntN(len(at)+1)] {
				at[i] = byte(c.r.Uint32())
			}
		default:
			for i := range at {
				at[i] = byte(c.r.Uint32())
			}
		}
	}
}

// seed is the seed of Sum.
var seed = maphash.MakeSeed()

// Sum returns a hash of the files and their names. It is comparable within this process only.
func (f Files) Sum() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		maphash.WriteComparable(&h, name)
		maphash.WriteComparable(&h, len(f[name]))
		_, _ = h.Write(f[name])
	}
	return h.Sum64()
}
