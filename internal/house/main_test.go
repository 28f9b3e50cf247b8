// Package house holds the rules about the source of the whole module: imports, places, readers of each field, files on a path, and allocations.
package house_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain lets the tests read the source from the root of the module.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
