package main

import "testing"

// TestBusinessPartsAreUnique: no two payments of a run are one order.
func TestBusinessPartsAreUnique(t *testing.T) {
	seen := map[[2]string]int64{}
	for n := range int64(200_000) {
		user, order := businessParts(n + 1)
		if earlier, twice := seen[[2]string{user, order}]; twice {
			t.Fatalf("payments %d and %d are both %s of %s", earlier, n+1, order, user)
		}
		seen[[2]string{user, order}] = n + 1
	}
}
