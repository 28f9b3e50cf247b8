package batch_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// slowAPI serves an API without keys, which takes a little time for each request.
func slowAPI(t *testing.T) *commandtest.Counted {
	t.Helper()
	return commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(20 * time.Millisecond)
		w.WriteHeader(http.StatusCreated)
	})
}

// TestCopiesAtOnce: of two batches on a file and its copy, or on a file with two journals, that start at the same moment, one finds the rows of the other, and asks.
func TestCopiesAtOnce(t *testing.T) {
	t.Parallel()
	const rows = "id\n1\n2\n3\n4\n5\n6\n7\n8\n"
	for name, args := range map[string][2][]string{
		"a copy":       {{"a.csv"}, {"b.csv"}},
		"two journals": {{"a.csv", "--journal", "DIR/one.db"}, {"a.csv", "--journal", "DIR/two.db"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := slowAPI(t), t.TempDir()
			for _, file := range []string{"a.csv", "b.csv"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(rows), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var got [2]commandtest.Ran
			var both sync.WaitGroup
			for i := range args {
				both.Go(func() {
					all := []string{"batch", filepath.Join(dir, args[i][0]), "--url", s.URL, "--key", "o:{id}", "--profile", "none", "--workers", "1"}
					for _, arg := range args[i][1:] {
						all = append(all, strings.ReplaceAll(arg, "DIR", dir))
					}
					got[i] = commandtest.Run(t, all...)
				})
			}
			both.Wait()
			if one, other := got[0].Status, got[1].Status; min(one, other) != terminal.ExitOK || max(one, other) != terminal.ExitUsage || s.Sends.Load() != 8 {
				t.Errorf("status %d and %d after %d sends:\n%s\n%s", one, other, s.Sends.Load(), got[0].Err, got[1].Err)
			}
		})
	}
}

// TestLinkedFile: a link in another folder to a file that was run is the same file, and asks.
func TestLinkedFile(t *testing.T) {
	t.Parallel()
	s, dir := slowAPI(t), t.TempDir()
	file, link := filepath.Join(dir, "a.csv"), filepath.Join(dir, "links", "x.csv")
	if err := os.WriteFile(file, []byte("id\n1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../a.csv", link); err != nil {
		t.Fatal(err)
	}
	batch := func(file string) commandtest.Ran {
		return commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--profile", "none")
	}
	batch(file).Want(t, terminal.ExitOK)
	if got := batch(link).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "2 of its 2 rows were run already") || s.Sends.Load() != 2 {
		t.Errorf("%d sends: %s", s.Sends.Load(), got.Err)
	}
}
