package conformance_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
)

// Every case says what to fix, in a paragraph of its own words.
func TestEveryCaseHasAFix(t *testing.T) {
	t.Parallel()
	for _, c := range conformance.Cases() {
		switch {
		case len(c.Fix) < 60:
			t.Errorf("%s: the fix is %q, want a paragraph in repair.go, or in the case", c.ID, c.Fix)
		case strings.Contains(c.Fix, "\n") || !strings.HasSuffix(c.Fix, "."):
			t.Errorf("%s: the fix is no paragraph of whole sentences: %q", c.ID, c.Fix)
		case c.Fix == c.Impact || c.Fix == c.Rule:
			t.Errorf("%s: the fix repeats another text", c.ID)
		}
	}
}

// A repair without a case is one that nobody reads.
func TestEveryRepairHasACase(t *testing.T) {
	t.Parallel()
	for id := range conformance.Repairs() {
		if _, found := conformance.Find(id); !found {
			t.Errorf("%s is no case", id)
		}
	}
}
