package oncehttp

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// TestLanesClaimMany: of an origin that has its fill nothing more is claimed until a quarter of that is done; then all that
// is missing is, in one claim.
func TestLanesClaimMany(t *testing.T) {
	t.Parallel()
	const workers, fill = 8, 16
	l := newLanes(workers, workers)
	l.divide(1)
	if n := l.room("a", 0); n != fill {
		t.Fatalf("room of an origin that has nothing here: %d, want %d", n, fill)
	}
	l.put(pointers(make([]persist.Record, fill)))
	for did := 1; did <= fill/4; did++ {
		if _, more := l.take(); !more {
			t.Fatal("nothing to take")
		}
		l.done("")
		asked := len(l.wanted) > 0
		want := 0
		if did == fill/4 {
			want = did
		}
		if n := l.room("", 0); n != want || asked != (want > 0) {
			t.Errorf("after %d of %d: room %d, more is wanted: %v; want %d, %v", did, fill, n, asked, want, want > 0)
		}
	}
}
