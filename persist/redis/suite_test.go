package redis_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/redis"
	"github.com/oncehttp/oncehttp/persist/seal"
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

// TestSuiteSealed runs the suite over a sealed journal.
func TestSuiteSealed(t *testing.T) {
	t.Parallel()
	s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}})
	if err != nil {
		t.Fatal(err)
	}
	h := harness(t, durableURL(t))
	store := h.New
	h.New = func(dir string) (func() (persist.Journal, error), error) {
		open, err := store(dir)
		return func() (persist.Journal, error) {
			j, err := open()
			if err != nil {
				return nil, err
			}
			return s.Journal(context.Background(), j)
		}, err
	}
	h.Cases = sqltest.Part(persisttest.Names(), 1, 6)
	persisttest.Run(t, h)
}
