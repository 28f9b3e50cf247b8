package conformance_test

import (
	"os"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

// TestMain lets several tests run at once: those over TCP wait. The race detector leaves no time for that: they have limits by the clock.
func TestMain(m *testing.M) {
	if thinning == 1 {
		testrun.AtOnce(testrun.N(8, 5))
	}
	os.Exit(m.Run())
}
