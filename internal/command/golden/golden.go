// Package golden compares texts with files in testdata.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew; read the difference before you keep it")

// Compare fails the test if text differs from the file testdata/NAME.txt. With the flag -update it writes the file instead.
func Compare(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; the same test with -update writes it", err)
	}
	if string(want) != text {
		t.Errorf("%s has changed; the same test with -update writes it anew. Got\n%s", path, text)
	}
}
