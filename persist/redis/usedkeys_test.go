package redis_test

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// usedKeys is how many BenchmarkUsedKeys makes; docs/journals.md has figures. With usedTexts they are tombstones: they keep their text.
var (
	usedKeys  = flag.Int("used", 2_000, "used keys that are measured")
	usedTexts = flag.Bool("used-texts", false, "they keep their text")
)

// BenchmarkUsedKeys prints the bytes of memory that a used key takes on Redis: by the server's own count, and by its estimate of the journal's keys.
func BenchmarkUsedKeys(b *testing.B) {
	s := start(b, durable()...)
	j, ctx := open(b, s.url(), redis.Options{Prefix: "used", KeepKey: redis.KeepForever}), b.Context()
	before := usedMemory(b, s.url())
	var all sync.WaitGroup
	const callers = 16
	for n := range callers {
		all.Go(func() {
			for i := n; i < *usedKeys; i += callers {
				rec := sqltest.Record("shop", fmt.Sprintf("idemp:order:u%d:o%d", i*7919%1000003, i))
				rec.Window, rec.KeepAnswer, rec.KeepText = time.Second, -1, -1
				if *usedTexts {
					rec.KeepText = 0
				}
				rec, _, err := j.Begin(ctx, rec)
				if err == nil {
					err = j.Finish(ctx, sqltest.Finished(rec))
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for swept := 0; swept < *usedKeys; {
		n, err := j.Sweep(ctx, persist.Limits{Now: time.Now().Add(time.Hour)})
		if err != nil || n == 0 {
			b.Fatalf("swept %d, error %v", n, err)
		}
		swept += n
	}
	size, err := j.Size(ctx)
	if err != nil {
		b.Fatal(err)
	}
	each := float64(usedMemory(b, s.url())-before) / float64(*usedKeys)
	b.Logf("%d used keys: used_memory %.0f bytes a key, MEMORY USAGE %.0f", *usedKeys, each, float64(size)/float64(*usedKeys))
	b.ReportMetric(each, "B/key")
}

// usedMemory returns the server's used_memory.
func usedMemory(t testing.TB, url string) int {
	t.Helper()
	info, err := connect(t, url).Info(t.Context(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if text, is := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); is {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("INFO has no used_memory")
	return 0
}
