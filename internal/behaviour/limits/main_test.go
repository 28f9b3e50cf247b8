package limits_test

import (
	"os"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

// TestMain lets several tests run at once: they wait for the servers of journals.
func TestMain(m *testing.M) {
	testrun.AtOnce(6)
	os.Exit(m.Run())
}
