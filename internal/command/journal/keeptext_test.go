package journal_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestPruneKeepTextOfAFile: in a file the texts go, and a compacted one has the keys all the same.
func TestPruneKeepTextOfAFile(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	for _, key := range []string{"a", "b"} {
		commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", key, "--journal", journal).Want(t, terminal.ExitOK)
	}
	for args, want := range map[string]string{
		"--keep-answer 240h":               "would drop 0 answers of ended operations, forget 0 used keys",
		"--keep-answer -1s":                "would drop 2 answers of ended operations, forget 0 used keys",
		"--keep-answer -1s --keep-key -1s": "would drop 0 answers of ended operations, forget 2 used keys",
	} {
		got := commandtest.Run(t, append([]string{"journal", "prune", "--journal", journal, "--dry-run"}, strings.Fields(args)...)...).Want(t, terminal.ExitOK)
		if !strings.HasPrefix(got.Out, want) {
			t.Errorf("%s: %q, want %q", args, got.Out, want)
		}
	}
	old := filepath.Join(t.TempDir(), "old.db")
	id := persist.ID{Account: "shop", Key: "a"}
	visitFile(t, old, func(j *bolt.Journal) {
		rec := persist.Record{ID: id, Method: "POST", Origin: "https://api.example:443", Target: "/", WireKey: "a", Fingerprint: make([]byte, 32), Created: time.Now().Add(-time.Hour)}
		rec, _, err := j.Begin(t.Context(), rec)
		if err == nil {
			rec.State, rec.Finished, rec.Answer = persist.StateConfirmed, rec.Created, &persist.Answer{Status: 201, At: rec.Created}
			err = j.Finish(t.Context(), rec)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	for _, args := range []string{"prune --keep-answer -1s --keep-text -1s --yes", "compact"} {
		commandtest.Run(t, append(append([]string{"journal"}, strings.Fields(args)...), "--journal", old)...).Want(t, terminal.ExitOK)
		visitFile(t, old, func(j *bolt.Journal) {
			if rec, err := j.Get(t.Context(), id); err != nil || !rec.Erased || rec.Origin != persist.Unkept || rec.FinalEffect() != persist.EffectHappened {
				t.Errorf("after %s: %+v, %v", args, rec, err)
			}
		})
	}
}

// visitFile opens the journal in a file, hands it over, and closes it.
func visitFile(t *testing.T, path string, visit func(j *bolt.Journal)) {
	t.Helper()
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	visit(j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
