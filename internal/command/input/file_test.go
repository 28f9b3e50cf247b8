package input_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/input"
)

// TestFolder: the rows of stdin have no folder, and no journal lies beside them.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\n1\n")
	for name, want := range map[string]string{"-": "", file: dir} {
		in, err := input.Open(name, strings.NewReader("id\n1\n"), dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Folder(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		in.Close()
	}
}
