// Package journaltest holds the journals of the tests of behaviour: every kind in virtual time, journals as opened by other
// processes, and failing journals.
package journaltest

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Each runs f in virtual time on a new journal of each engine for one process: memory and bolt. The folder for the file is made outside of the virtual time.
func Each(t *testing.T, f func(t *testing.T, j persist.Journal)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { f(t, memory.New()) })
	})
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(testrun.Dir(t), "j.db")
		synctest.Test(t, func(t *testing.T) {
			j, err := bolt.Open(path, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { j.Close() })
			f(t, j)
		})
	})
}

// TwoProcesses runs f in virtual time, as a parallel subtest with the name "two processes".
func TwoProcesses(t *testing.T, f func(*testing.T)) {
	t.Run("two processes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

// Two runs test with the journals of two clients: in one process they share a journal, in two each has its own view of the same records.
func Two(t *testing.T, test func(t *testing.T, one, other persist.Journal)) {
	t.Helper()
	Each(t, func(t *testing.T, j persist.Journal) { test(t, j, j) })
	TwoProcesses(t, func(t *testing.T) {
		j := memory.New()
		test(t, NewFairLeasing(j), NewFairLeasing(j))
	})
}
