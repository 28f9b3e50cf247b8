package plainhttp_test

import (
	"os"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

// TestMain lets several rows run at once: they wait for servers and for deadlines.
func TestMain(m *testing.M) {
	testrun.AtOnce(testrun.N(12, 2))
	os.Exit(m.Run())
}
