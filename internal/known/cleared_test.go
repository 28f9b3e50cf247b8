package known

import "testing"

// TestCleared: a request is cleared by a look during which there was no doubt, until there is one of it.
func TestCleared(t *testing.T) {
	t.Parallel()
	var c Cleared[string]
	if c.Has("a") {
		t.Error("nothing was looked at")
	}
	before := c.Doubts()
	c.Clear("a", before)
	c.Clear("b", before)
	c.Doubt("b")
	if !c.Has("a") || c.Has("b") {
		t.Errorf("a %v, b %v; want a alone", c.Has("a"), c.Has("b"))
	}
	if c.Clear("b", before); c.Has("b") {
		t.Error("a look that began before the doubt counts")
	}
	if c.Clear("b", c.Doubts()); !c.Has("b") {
		t.Error("a look after the doubt does not count")
	}
}

// TestClearedIsBounded: past the bound it forgets, which costs a look.
func TestClearedIsBounded(t *testing.T) {
	t.Parallel()
	var c Cleared[int]
	for i := range clearedMost {
		c.Clear(i, 0)
	}
	if !c.Has(0) || !c.Has(clearedMost-1) {
		t.Error("forgotten at the bound")
	}
	if c.Clear(clearedMost, 0); c.Has(0) || !c.Has(clearedMost) || len(c.at) != 1 {
		t.Errorf("%d are kept past the bound", len(c.at))
	}
}
