package persist_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// TestHoldReasons: the list has every constant of the source, once.
func TestHoldReasons(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("hold.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []persist.HoldReason
	for _, constant := range regexp.MustCompile(`HoldReason = "([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, persist.HoldReason(constant[1]))
	}
	if got := persist.HoldReasons(); !slices.Equal(got, want) {
		t.Errorf("HoldReasons: %q, want %q", got, want)
	}
}
