package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/persisttest"
)

// TestDisk: what the simulated processes write to is a journal as the contract wants
// it, also after a crash.
func TestDisk(t *testing.T) {
	t.Parallel()
	persisttest.Run(t, persisttest.Harness{
		Durable: true,
		New: func(string) (func() (persist.Journal, error), error) {
			var last *disk
			return func() (persist.Journal, error) {
				if last == nil {
					last = newDisk(1, 0, "")
				} else {
					last = last.crash(rand.New(rand.NewPCG(1, 1))).(*disk)
				}
				last.pace = 50 * time.Microsecond
				return last, nil
			}, nil
		},
	})
}
