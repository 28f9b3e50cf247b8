package house_test

import (
	"go/build"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/oncehttp/oncehttp"

// rule says what a folder's non-test files may import besides the standard
// library. A longer folder goes before a shorter one.
type rule struct {
	dir   string
	under bool // folders below it, too
	may   []string
}

// importRules lists the folders whose imports are pinned.
func importRules() []rule {
	return []rule{
		{".", false, []string{
			"github.com/google/uuid", module + "/profile", module + "/persist",
			module + "/internal/run", module + "/internal/intent", module + "/internal/operation", module + "/internal/jsonpointer", module + "/internal/request", module + "/internal/inflight",
		}},
		{"internal/run", false, []string{
			"github.com/hashicorp/go-retryablehttp", "github.com/cenkalti/backoff/v4", "github.com/google/uuid",
			module + "/profile", module + "/persist", module + "/persist/bolt",
			module + "/internal/classify", module + "/internal/dsn", module + "/internal/wire", module + "/internal/request", module + "/internal/sanitize", module + "/internal/inflight", module + "/internal/known", module + "/internal/operation", module + "/internal/lease", module + "/internal/lanes", module + "/internal/webhook",
			module + "/internal/acts", module + "/internal/intent", module + "/internal/alike", module + "/internal/authorized", module + "/internal/owner", module + "/internal/place",
		}},
		{"internal/eventsign", true, nil},
		{"internal/webhook", true, []string{module + "/internal/eventsign", module + "/profile", module + "/persist", module + "/internal/jsonpointer", module + "/internal/acts", module + "/internal/intent", module + "/internal/operation", module + "/internal/request"}},
		{"internal/lanes", true, []string{module + "/persist", module + "/internal/sanitize"}},
		{"internal/lease", true, []string{module + "/persist", module + "/internal/acts", module + "/internal/sanitize"}},
		{"internal/classify", true, []string{module + "/profile", module + "/internal/jsonpointer"}},
		{"internal/operation/explore", true, []string{module + "/persist", module + "/profile", module + "/internal/classify", module + "/internal/acts", module + "/internal/intent", module + "/internal/operation"}},
		{"internal/operation/mutants", true, nil},
		{"internal/operation", false, []string{module + "/persist", module + "/profile", module + "/internal/classify", module + "/internal/pauses"}},
		{"internal/intent", true, []string{module + "/persist", module + "/internal/classify", module + "/internal/operation"}},
		{"internal/acts", true, []string{module + "/persist", module + "/internal/classify", module + "/internal/operation"}},
		{"internal/wire", true, []string{module + "/internal/coding", module + "/internal/sanitize"}},
		{"internal/coding", true, nil},
		{"internal/dsn", true, nil},
		{"internal/jsonpointer", true, nil},
		{"internal/request", true, []string{
			"github.com/google/uuid", module + "/profile", module + "/persist", module + "/internal/jsonpointer", module + "/internal/sanitize", module + "/internal/intent",
		}},
		{"internal/sanitize", true, nil},
		{"internal/pauses", true, nil},
		{"internal/inflight", true, []string{module + "/persist", module + "/internal/sanitize"}},
		{"internal/alike", true, []string{module + "/persist", module + "/internal/known", module + "/internal/intent", module + "/internal/operation", module + "/internal/request"}},
		{"internal/authorized", true, []string{module + "/persist", module + "/internal/request"}},
		{"internal/owner", true, []string{module + "/persist", module + "/internal/request"}},
		{"internal/place", true, []string{module + "/persist", module + "/internal/intent", module + "/internal/request"}},
		{"internal/known", true, []string{module + "/persist", module + "/internal/pauses", module + "/internal/sanitize"}},
		{"profile", true, nil},
		{"persist", false, nil},
		{"persist/internal/codec", true, []string{module + "/persist"}},
		{"persist/internal/usedkey", true, []string{module + "/persist"}},
		{"persist/internal/landing", true, []string{module + "/persist"}},
		{"persist/internal/sqljournal", true, []string{module + "/persist", module + "/persist/internal/codec", module + "/persist/internal/landing", module + "/persist/internal/usedkey"}},
		{"persist/internal/notify", true, []string{module + "/persist"}},
		{"persist/internal/sqltest", true, []string{
			module, module + "/internal/testport", module + "/internal/testrun", module + "/persist", module + "/persist/memory", module + "/persist/seal",
			module + "/persist/internal/sqljournal", module + "/profile", module + "/mockserver",
		}},
		{"persist/memory", true, []string{module + "/persist", module + "/persist/internal"}},
		{"persist/bolt", true, []string{module + "/persist", module + "/persist/internal", "go.etcd.io/bbolt", "golang.org/x/sys"}},
		{"persist/postgres", true, []string{module + "/persist", module + "/persist/internal/sqljournal", module + "/persist/internal/notify", "github.com/jackc/pgx/v5"}},
		{"persist/mysql", true, []string{module + "/persist", module + "/persist/internal/sqljournal", "github.com/go-sql-driver/mysql"}},
		{"persist/seal", true, []string{module + "/persist", module + "/persist/internal/codec"}},
		{"persist/redis", true, []string{module + "/persist", module + "/persist/internal/codec", module + "/persist/internal/landing", module + "/persist/internal/notify", module + "/persist/internal/usedkey", "github.com/redis/go-redis/v9"}},
		{"persist/persisttest", true, []string{module + "/persist"}},
		{"oncehttptest", true, []string{module, module + "/mockserver", module + "/persist", module + "/persist/memory"}},
		{"reconcile", true, []string{module, module + "/persist", module + "/profile", module + "/internal/classify", module + "/internal/request", module + "/internal/jsonpointer", module + "/internal/coding"}},
		{"sign", true, []string{"github.com/dunglas/httpsfv", module + "/internal/eventsign"}},
		{"mockserver", false, []string{module + "/profile", module + "/mockserver/bugs", module + "/mockserver/internal/keylayer"}},
		{"mockserver/bugs", true, []string{module + "/mockserver/internal/keylayer"}},
		{"mockserver/referee", true, []string{module + "/mockserver"}},
		{"mockserver/internal/keylayer", true, []string{module + "/profile"}},
		{"mockserver/internal/mocktest", true, []string{module + "/mockserver"}},
		{"conformance", false, []string{module + "/profile", "github.com/anishathalye/porcupine"}},
		{"conformance/conformancetest", true, []string{module + "/conformance"}},
		{"conformance/targets", true, []string{module + "/profile", module + "/conformance", module + "/internal/report"}},
		{"internal/testport", true, nil},
		{"internal/testrun", true, nil},
		{"internal/report", true, nil},
	}
}

// TestImports holds every package to its rule, in process, so that no cached
// answer of a tool can hide a broken boundary.
func TestImports(t *testing.T) {
	t.Parallel()
	checked := map[string]bool{}
	err := filepath.WalkDir(".", func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); dir != "." && (name == "testdata" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); dir != "." && err == nil {
			return filepath.SkipDir // a module of its own
		}
		for _, r := range importRules() {
			if dir != filepath.FromSlash(r.dir) && !(r.under && strings.HasPrefix(filepath.ToSlash(dir), r.dir+"/")) {
				continue
			}
			for _, path := range importsOf(t, dir) {
				if !allowed(path, r.may) {
					t.Errorf("%s imports %s; it may import the standard library and %v", dir, path, r.may)
				}
				checked[r.dir] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range importRules() {
		if _, err := os.Stat(r.dir); err == nil && !checked[r.dir] && r.dir != "internal" {
			t.Errorf("nothing was checked in %s", r.dir)
		}
	}
}

// importsOf lists what the non-test files of a folder import, on any system.
func importsOf(t *testing.T, dir string) []string {
	t.Helper()
	ctx := build.Default
	ctx.UseAllFiles = true // whatever the build tags say
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ctx.ImportDir(abs, 0)
	if _, none := err.(*build.NoGoError); none {
		return nil
	}
	if p == nil || len(p.Imports) == 0 && err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return p.Imports
}

func allowed(path string, may []string) bool {
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(may, func(m string) bool {
		alone := m == module || m == module+"/persist" || m == module+"/mockserver" // not with what is below
		return path == m || strings.HasPrefix(path, m+"/") && !alone
	})
}

// TestWhatAConsumerVendors: a module that imports the root package alone vendors
// go-retryablehttp with go-cleanhttp, backoff, uuid, bbolt and x/sys, and nothing
// else, on any system. It runs the go command in a folder of its own, offline.
func TestWhatAConsumerVendors(t *testing.T) {
	t.Parallel()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Fatalf("no go command: %v", err)
	}
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	own, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, requires, _ := strings.Cut(string(own), "\nrequire (")
	mod := "module consumer\n\ngo 1.25.0\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n\nrequire (" + requires
	for name, text := range map[string]string{
		"go.mod":  mod,
		"main.go": "package main\n\nimport _ \"" + module + "\"\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), goTool, "mod", "vendor")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go mod vendor: %v\n%s", err, out)
	}
	list, err := os.ReadFile(filepath.Join(dir, "vendor", "modules.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"github.com/cenkalti/backoff/v4", "github.com/google/uuid", "github.com/hashicorp/go-cleanhttp",
		"github.com/hashicorp/go-retryablehttp", module, "go.etcd.io/bbolt", "golang.org/x/sys",
	}
	if got := withPackages(string(list)); !slices.Equal(got, want) {
		t.Errorf("a consumer vendors\n%v\nwant\n%v", got, want)
	}
}

// withPackages lists the modules of a vendor/modules.txt of which there is a
// package.
func withPackages(list string) []string {
	var got []string
	current := ""
	for line := range strings.Lines(list) {
		switch {
		case strings.HasPrefix(line, "## "):
		case strings.HasPrefix(line, "# "):
			current = strings.Fields(line)[1]
		case !slices.Contains(got, current):
			got = append(got, current)
		}
	}
	slices.Sort(got)
	return got
}
