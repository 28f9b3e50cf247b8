package redis_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

func TestWhoCannot(t *testing.T) {
	t.Parallel()
	sqltest.WhoCannot(t, func(t *testing.T) func() persist.Journal {
		url := start(t, durable()...).url()
		return func() persist.Journal { return open(t, url, redis.Options{KeepKey: redis.KeepForever}) }
	})
}

// TestNewer: as on PostgreSQL. The format of an entry is a byte of its head.
func TestNewer(t *testing.T) {
	t.Parallel()
	url := start(t, durable()...).url()
	client := connect(t, url)
	sqltest.Newer(t, open(t, url, redis.Options{KeepKey: redis.KeepForever}), func(key string) {
		sum := sha256.Sum256([]byte(key))
		changed := 0
		for _, name := range client.Keys(t.Context(), "*:records").Val() {
			for field, head := range client.HGetAll(t.Context(), name).Val() {
				if strings.HasPrefix(field, "h"+string(sum[:20])) {
					if err := client.HSet(t.Context(), name, field, head[:34]+"\x02"+head[35:]).Err(); err != nil {
						t.Fatal(err)
					}
					changed++
				}
			}
		}
		if changed != 1 {
			t.Fatalf("%d records were changed", changed)
		}
	})
}
