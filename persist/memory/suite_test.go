package memory_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/persisttest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	persisttest.Run(t, persisttest.Harness{
		New: func(string) (func() (persist.Journal, error), error) {
			return func() (persist.Journal, error) { return memory.New(), nil }, nil
		},
	})
}
