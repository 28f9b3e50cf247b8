package bolt_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// BenchmarkCount measures Count beside unfinished records, of which one in ten is held.
func BenchmarkCount(b *testing.B) {
	for _, unfinished := range []int{1_000, 200_000} {
		for name, open := range map[string]func() persist.Journal{
			"memory": func() persist.Journal { return memory.New() },
			"bolt": func() persist.Journal {
				return openWith(b, newPath(b), bolt.Options{Sync: func(*os.File) error { return nil }})
			},
		} {
			b.Run(fmt.Sprintf("%s/unfinished=%d", name, unfinished), func(b *testing.B) {
				j := open()
				beginMany(b, j, unfinished)
				counter := j.(persist.Counter)
				for b.Loop() {
					if c, err := counter.Count(b.Context()); err != nil || c.Unfinished() != unfinished {
						b.Fatalf("%d unfinished, error %v; want %d", c.Unfinished(), err, unfinished)
					}
				}
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// beginMany begins n records.
func beginMany(b *testing.B, j persist.Journal, n int) {
	const workers = 64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				r := record(fmt.Sprint(i))
				if i%10 == 0 {
					r.State, r.HoldReason = persist.StateHeld, persist.HoldExpired
				}
				if _, _, err := j.Begin(context.Background(), r); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
