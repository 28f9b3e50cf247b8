package sqljournal

import (
	"slices"
	"testing"
)

// TestStatements: a line that ends with a semicolon ends a statement, but not in the body of a function.
func TestStatements(t *testing.T) {
	t.Parallel()
	got := statements("-- One.\nCREATE TABLE a (b text);\n\nCREATE FUNCTION f() AS $$\nBEGIN\n  x;\n  y;\nEND\n$$;\nDROP TABLE c;\n")
	want := []string{"-- One.\nCREATE TABLE a (b text)", "CREATE FUNCTION f() AS $$\nBEGIN\n  x;\n  y;\nEND\n$$", "DROP TABLE c"}
	if !slices.Equal(got, want) {
		t.Errorf("statements: %q, want %q", got, want)
	}
}
