package redis_test

import (
	"context"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// harness makes journals on one server, each with a prefix of its own.
func harness(t testing.TB, url string) persisttest.Harness {
	return persisttest.Harness{
		Durable: true,
		New: func(string) (func() (persist.Journal, error), error) {
			opts := own(t, url)
			return func() (persist.Journal, error) { return redis.Open(context.Background(), url, opts) }, nil
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	persisttest.Run(t, harness(t, durableURL(t)))
}
