package batch

import (
	"encoding/binary"
	"testing"
)

// TestGoneSpills: keys are counted as with all of them in memory when they go to files.
func TestGoneSpills(t *testing.T) {
	t.Parallel()
	keyOf := func(n int) (key [16]byte) {
		binary.BigEndian.PutUint64(key[:], uint64(n)*0x9e3779b97f4a7c15+1)
		return key
	}
	for _, most := range []int{3, 1000} {
		s := &sorter{dir: t.TempDir(), most: most}
		add := func(e entry) {
			if err := s.add(e); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 100 { // rows
			add(entry{key: keyOf(n), at: uint64(n), number: uint64(n + 1)})
		}
		for n := 90; n < 120; n++ { // operations, of two tries each
			for try := range 2 {
				e := entry{key: keyOf(n), at: uint64(1000 - 2*n + try)}
				if n >= 110 && try == 1 {
					e.body[0] = 1
				}
				add(e)
			}
		}
		got, err := s.gone()
		if want := (left{gone: 20, open: 10, fresh: 90, oldest: 1000 - 2*119}); got != want || err != nil {
			t.Errorf("of %d in memory: %+v, %v; want %+v", most, got, err, want)
		}
	}
}
