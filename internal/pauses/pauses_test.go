package pauses

import (
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for n, want := range []time.Duration{0, s, 2 * s, 4 * s, 7 * s, 7 * s} {
		if got := After(n, s, 7*s); got != want {
			t.Errorf("after %d failures %v, want %v", n, got, want)
		}
	}
	for _, r := range [][4]time.Duration{{1, 5, 3, 3}, {1 << 40, 1, 1 << 62, 1 << 62}, {-1, 5, 9, 0}, {3, 0, 9, 0}} {
		if got := After(int(r[0]), r[1], r[2]); got != r[3] {
			t.Errorf("After(%d, %d, %d) is %d, want %d", r[0], r[1], r[2], got, r[3])
		}
	}
}
