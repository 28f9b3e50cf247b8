package bolt_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
)

// matrix counts images, each of them once, and of which trace it is.
type matrix struct {
	mu    sync.Mutex
	seen  map[uint64]bool
	of    map[string]int // by trace
	trace string         // the images of this one are entered
	lives int
}

func newMatrix() *matrix { return &matrix{seen: map[uint64]bool{}, of: map[string]int{}} }

// enter counts an image.
func (m *matrix) enter(sum uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.seen[sum] {
		m.seen[sum] = true
		m.of[m.trace]++
	}
}

// images is how many there were, no two of them the same.
func (m *matrix) images() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.seen)
}

// wantSpread fails the test unless so many images are spread over so many traces, no trace with more than a tenth.
func (m *matrix) wantSpread(t *testing.T, images, traces int) {
	t.Helper()
	if n := m.images(); n < images {
		t.Errorf("%d images, want %d", n, images)
	}
	if len(m.of) < traces {
		t.Errorf("%d traces, want %d", len(m.of), traces)
	}
	for _, trace := range slices.Sorted(maps.Keys(m.of)) {
		if n := m.of[trace]; n > m.images()/10 {
			t.Errorf("%d of %d images are of the trace %q, want a tenth at most", n, m.images(), trace)
		}
	}
	most := slices.Sorted(maps.Values(m.of))
	t.Logf("%d images of %d processes in %d traces, with %d to %d images each", m.images(), m.lives, len(m.of), most[0], most[len(most)-1])
}
