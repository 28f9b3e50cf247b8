package redis_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

var countOpen = flag.Int("open", 1_000, "unfinished records that BenchmarkCount counts")

// BenchmarkCount measures Count beside unfinished records.
func BenchmarkCount(b *testing.B) {
	at := durableURL(b)
	j := open(b, at, own(b, at))
	const workers = 64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < *countOpen; i += workers {
				if _, _, err := j.Begin(context.Background(), sqltest.Record("a", fmt.Sprint(i))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for b.Loop() {
		if c, err := j.Count(b.Context()); err != nil || c.Pending != *countOpen {
			b.Fatalf("Count: %d pending, error %v; want %d", c.Pending, err, *countOpen)
		}
	}
}
