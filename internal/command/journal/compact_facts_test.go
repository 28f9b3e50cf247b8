package journal_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestCompactKeepsFacts: what holds for a journal as a whole outlasts a compact also where no operation is left that would show it; only
// --seal-key changes it.
func TestCompactKeepsFacts(t *testing.T) {
	t.Parallel()
	keys := commandtest.WriteFile(t, "seal.keys", "2026-11:"+strings.Repeat("A", 43)+"=\n")
	for name, c := range map[string]struct {
		stands, want string
		args         []string
	}{
		"in clear":        {persist.FactPlain, persist.FactPlain, nil},
		"sealed":          {"sealed", "sealed", nil},
		"sealed, keys":    {"sealed", "sealed", []string{"--seal-key", "@" + keys}},
		"in clear, keys":  {persist.FactPlain, "sealed", []string{"--seal-key", "@" + keys}},
		"a HashKey":       {"sealed 00112233445566778899aabbccddeeff", "sealed 00112233445566778899aabbccddeeff", nil},
		"nothing is said": {"", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "j.db")
			var write []byte
			if c.stands != "" {
				write = []byte(c.stands)
			}
			if got := factOf(t, path, write); got != c.stands {
				t.Fatalf("it stands %q", got)
			}
			commandtest.Run(t, append([]string{"journal", "compact", "--journal", path}, c.args...)...).Want(t, terminal.ExitOK)
			if got := factOf(t, path, nil); got != c.want {
				t.Errorf("after a compact %q stands, want %q", got, c.want)
			}
		})
	}
}

// factOf writes the seal fact of a journal, unless value is nil, and returns its value.
func factOf(t *testing.T, path string, value []byte) string {
	t.Helper()
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	standing, err := j.Fact(t.Context(), persist.FactSeal, nil, value)
	if err != nil {
		t.Fatal(err)
	}
	return string(standing)
}
