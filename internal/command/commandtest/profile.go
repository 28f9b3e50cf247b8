package commandtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/profile"
)

// EndpointOf returns the path of an endpoint for POST of a built-in profile: for n 0 the first, for 1 the second. A {variable} in the path gets a value. If the
// profile has too few, it returns an endpoint of the mock's own. Endpoints without a key are passed over, and those with a variable until n others were counted.
func EndpointOf(t *testing.T, name string, n int) string {
	t.Helper()
	p, ok := profile.ByName(name)
	if !ok {
		t.Fatalf("no profile %q", name)
	}
	for _, e := range p.Endpoints {
		if e.Method != "POST" || e.Keyless || strings.Contains(e.Path, "{") && n > 0 {
			continue
		}
		if n--; n < 0 {
			return strings.NewReplacer("{", "x-", "}", "").Replace(e.Path)
		}
	}
	return []string{"/payments", "/refunds"}[max(n, 0)]
}

// Skeleton returns the output of profile new.
func Skeleton(t *testing.T, args ...string) string {
	t.Helper()
	return Run(t, append([]string{"profile", "new"}, args...)...).Want(t, terminal.ExitOK).Out
}

// The parts of the skeleton until something is known.
const (
	StartSource  = `"start": {"ref": "nothing is known yet", "date": "2026-11", "confidence": "assumed"}`
	StartCarrier = `{"value": {"place": "none"}, "source": "start"}`
)

// WriteProfile writes a profile file under that name, by which keys travel in a header of its own, and returns its path. It is the skeleton of profile new with three facts
// filled in: a source, the place of the key, and the methods.
func WriteProfile(t *testing.T, name string) string {
	t.Helper()
	text := strings.Replace(Skeleton(t, name), StartSource, `"us": {"ref": "tried", "date": "2026-11", "confidence": "primary"}`, 1)
	text = strings.Replace(text, `"carrier": `+StartCarrier, `"carrier": {"value": {"place": "header", "name": "X-Our-Key"}, "source": "us"}`, 1)
	text = strings.Replace(text, `"methods": null`, `"methods": {"value": ["POST"], "source": "us"}`, 1)
	path := filepath.Join(t.TempDir(), name+".json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
