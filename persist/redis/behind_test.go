package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// BenchmarkClaimBehind claims beside due records that are not for the worker: with none, and behind many that are due for longer.
func BenchmarkClaimBehind(b *testing.B) {
	for _, n := range []int{0, 200_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			j := open(b, start(b, durable()...).url(), redis.Options{KeepKey: redis.KeepForever})
			sqltest.ClaimBehind(b, n, j, func(n int) {
				var all sync.WaitGroup
				const writers = 64
				for w := range writers {
					all.Go(func() {
						for i := w; i < n; i += writers {
							rec := sqltest.Record("a", fmt.Sprint("other", i))
							rec.Region, rec.NextAttempt = "another", time.Now().Add(-time.Hour)
							if _, _, err := j.Begin(context.Background(), rec); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
			})
		})
	}
}
