package bolt_test

import (
	"path/filepath"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/persisttest"
)

func harness(opts bolt.Options) persisttest.Harness {
	return persisttest.Harness{
		Durable: true,
		New: func(dir string) (func() (persist.Journal, error), error) {
			return func() (persist.Journal, error) {
				j, err := tryOpen(filepath.Join(dir, "journal.db"), opts)
				if err != nil {
					return nil, err
				}
				return j, nil
			}, nil
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	persisttest.Run(t, harness(bolt.Options{}))
}

// TestSuiteTwoSyncs runs the suite with a version of bbolt that was not reviewed.
func TestSuiteTwoSyncs(t *testing.T) {
	t.Parallel()
	h := harness(bolt.WithBboltVersion(bolt.Options{}, "another"))
	h.Cases = testrun.Some(persisttest.Names(), 6)
	persisttest.Run(t, h)
}

// TestSuiteCollisions runs the suite with indexes in which a fourth of all keys
// share each hash, so that nothing may be concluded from a hash alone.
func TestSuiteCollisions(t *testing.T) {
	t.Parallel()
	h := harness(bolt.WithHashMask(bolt.Options{}, 3<<40))
	h.Cases = testrun.Some(persisttest.Names(), 6)
	persisttest.Run(t, h)
}
