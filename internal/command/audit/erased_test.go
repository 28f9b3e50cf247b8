package audit_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestErasedRows: rows that were paid, and erased since, are done for a batch, its dry run and a later generation, and the audit finds them in the exports by the
// digests of their keys. Nobody is told to send one of them anew.
func TestErasedRows(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n3\n")
	at := file + ".oncehttp.db"
	batch := func(more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}"}, more...)...)
	}
	batch().Want(t, terminal.ExitOK)
	erase(t, at, "idemp:o:1", "idemp:o:2")
	for _, more := range [][]string{nil, {"--dry-run"}, {"--generation", "2"}, {"--generation", "2", "--dry-run"}} {
		got := batch(more...).Want(t, terminal.ExitOK)
		if !strings.Contains(got.Err, ": 3 rows: 3 done") || strings.Contains(got.Err+got.Out, "mismatch") || strings.Contains(got.Err, "other content") {
			t.Errorf("%v: %s%s", more, got.Out, got.Err)
		}
	}
	copied := commandtest.WriteFile(t, filepath.Join(filepath.Dir(file), "copy.csv"), "id\n1\n2\n")
	if got := commandtest.Run(t, "batch", copied, "--url", s.URL, "--key", "o:{id}").Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "2 of its 2 rows were run already") {
		t.Errorf("a copy of the erased rows: %s", got.Err)
	}
	export := commandtest.WriteFile(t, "export.csv", "key,status\nidemp:o:1,paid\nidemp:o:3,paid\nidemp:o:9,paid\n")
	got := commandtest.Run(t, "audit", "--journal", at, "--against", export, "--match", "key", "--where", "status=paid").Want(t, terminal.ExitFindings)
	if !strings.Contains(got.Err, ": 1 "+audit.NotAuditable+", 1 foreign") && !strings.Contains(got.Err, ": 1 foreign, 1 "+audit.NotAuditable) {
		t.Errorf("audit: %s%s", got.Out, got.Err)
	}
	if strings.Contains(got.Out, "under a new key") || !strings.Contains(got.Out, "idemp:o:9") || strings.Contains(got.Out, "idemp:o:1") {
		t.Errorf("audit: %s", got.Out)
	}
	commandtest.WriteFile(t, file, "id\n1\n4\n") // 2 and 3 have left it, 4 is new
	if got := batch("--strict").Want(t, terminal.ExitUsage); !strings.Contains(got.Err, `"idemp:o:3", is not in the file any more`) || !strings.Contains(got.Err, "1 row is new") {
		t.Errorf("a new row beside erased ones: %s", got.Err)
	}
	if n := s.Sends.Load(); n != 3 {
		t.Errorf("%d sends, want 3", n)
	}
}

// TestErasedBelowALaterGeneration: a row that was settled as absent, paid as generation 2, and whose first generation was erased, is done, and no command is advised for it.
func TestErasedBelowALaterGeneration(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
	at := file + ".oncehttp.db"
	batch := func(more ...string) commandtest.Ran {
		return commandtest.Run(t, commandtest.Fast(append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1"}, more...)...)...)
	}
	batch().Want(t, terminal.ExitUnknown)
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, at, "idemp:o:1"), "--absent", "--yes", "--journal", at).Want(t, terminal.ExitOK)
	up.Store(true)
	batch("--generation", "2").Want(t, terminal.ExitOK)
	erase(t, at, "idemp:o:1")
	for _, more := range [][]string{nil, {"--dry-run"}} {
		if got := batch(more...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, ": 1 row: 1 done") {
			t.Errorf("%v: %s", more, got.Err)
		}
	}
	if n := s.Sends.Load(); n != 2 {
		t.Errorf("%d sends, want 2", n)
	}
}

// erase erases operations in a journal file, whatever their windows.
func erase(t *testing.T, at string, keys ...string) {
	t.Helper()
	j, err := bolt.Open(at, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }() // again: after a failure
	secret, err := j.Secret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		rec, err := j.Get(t.Context(), persist.ID{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		fingerprint := rec.Fingerprint
		rec.Erase(secret)
		if _, err := j.Erase(t.Context(), rec, fingerprint); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
