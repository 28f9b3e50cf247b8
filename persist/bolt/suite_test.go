package bolt_test

import (
	"path/filepath"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/persisttest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	persisttest.Run(t, persisttest.Harness{
		Durable: true,
		New: func(dir string) (func() (persist.Journal, error), error) {
			return func() (persist.Journal, error) {
				return bolt.Open(filepath.Join(dir, "journal.db"), bolt.Options{})
			}, nil
		},
	})
}
