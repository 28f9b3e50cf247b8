package bolt_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// liveHeap is what the heap holds after a collection, in bytes.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC() // what the first one only took out of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// TestHeapARecord guards how much heap an open journal takes for each of its records,
// finished or pending, begun by this process or found in the file. It looks at the whole
// heap, so it is not parallel. docs/performance.md has the figures: go test -v shows them.
func TestHeapARecord(t *testing.T) {
	const n, workers = 100_000, 64
	for _, c := range testrun.Some([]struct {
		name      string
		generated bool
		finished  bool
		most      float64
	}{
		{"finished", false, true, 46}, {"pending", false, false, 55}, {"pending, generated keys", true, false, 80},
	}, 3) {
		path, before := newPath(t), liveHeap()
		j := openWith(t, path, bolt.Options{Sync: func(*os.File) error { return nil }})
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := w; i < n; i += workers {
					r := record(fmt.Sprintf("idemp:order:u%d:o%d", i%97, i))
					r.Generated = c.generated
					r, _, err := j.Begin(context.Background(), r)
					if err == nil && c.finished {
						err = j.Finish(context.Background(), confirmed(r))
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		flush(t, j)
		begun := (liveHeap() - before) / n
		closeIt(t, j)
		before = liveHeap()
		j = openWith(t, path, bolt.Options{})
		opened := (liveHeap() - before) / n
		closeIt(t, j)
		t.Logf("%d records, %s: %.0f bytes of heap each, %.0f after they were opened again", n, c.name, begun, opened)
		if begun > c.most || opened > c.most {
			t.Errorf("%s: a record takes %.0f bytes of heap, %.0f after it was opened again; want at most %.0f", c.name, begun, opened, c.most)
		}
	}
}
