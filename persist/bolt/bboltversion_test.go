package bolt_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestSyncsByVersion: only with the version of bbolt that was reviewed does a commit
// have one sync, but for the first. Otherwise, and where the program does not say, bbolt
// syncs twice.
func TestSyncsByVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version string
		syncs   int64
	}{
		"reviewed":               {bolt.Reviewed, 1},
		"another":                {"v1.99.0", 2},
		"none, as in this build": {"", 2},
	} {
		path := newPath(t)
		j, err := bolt.Open(path, bolt.WithBboltVersion(bolt.Options{}, c.version))
		if err != nil {
			t.Fatal(err)
		}
		begin(t, j, record("first"))
		if s := j.Stats(); s.Commits != 1 || s.Syncs != 2 {
			t.Errorf("%s: %d commits with %d syncs, want 1 with 2", name, s.Commits, s.Syncs)
		}
		begin(t, j, record("second"))
		if s := j.Stats(); s.Commits != 2 || s.Syncs != 2+c.syncs {
			t.Errorf("%s: %d commits with %d syncs, want 2 with %d", name, s.Commits, s.Syncs, 2+c.syncs)
		}
		if noSync := j.NoSync(); noSync != (c.syncs == 1) {
			t.Errorf("%s: bbolt itself does not sync: %t", name, noSync)
		}
		want := mustContents(t, j)
		closeIt(t, j)
		j = open(t, path)
		if got := mustContents(t, j); !slices.Equal(got, want) {
			t.Errorf("%s: opened again it holds %q, want %q", name, got, want)
		}
		closeIt(t, j)
	}
}

// TestRequiredVersion: the module requires the version that was reviewed.
func TestRequiredVersion(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "\tgo.etcd.io/bbolt "+bolt.Reviewed+"\n") {
		t.Errorf("go.mod does not require bbolt %s", bolt.Reviewed)
	}
}
