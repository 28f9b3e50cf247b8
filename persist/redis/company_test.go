package redis_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

func TestCompany(t *testing.T) {
	t.Parallel()
	sqltest.Company(t, func(t *testing.T) func() persist.Journal {
		url := start(t, durable()...).url()
		return func() persist.Journal { return open(t, url, redis.Options{KeepKey: redis.KeepForever}) }
	})
}
