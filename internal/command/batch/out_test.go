package batch_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// --out holds what an earlier run of the same batch wrote, or something else, which nobody loses without a word.
func TestOutIsNotOverwritten(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	file := commandtest.WriteFile(t, "in.csv", "id\na\nb\n")
	other := commandtest.WriteFile(t, "other.csv", "id\nc\n")
	out := file + ".ndjson"
	batch := func(file string, more ...string) []string {
		return append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--out", out, "--workers", "1"}, more...)
	}
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for range 2 { // whose operations are forgotten each time
		commandtest.Run(t, batch(file)...).Want(t, terminal.ExitUnknown)
		if n := strings.Count(read(), "\n"); n != 2 {
			t.Fatalf("%d lines, want 2", n)
		}
	}
	before, sends := read(), s.Sends.Load()
	commandtest.Run(t, batch(other)...).Usage(t, "oncehttp: --out "+out+" holds something else than an earlier run of this batch; --append adds to it, --overwrite replaces it")
	if read() != before || s.Sends.Load() != sends {
		t.Error("the file changed, or something was sent")
	}
	commandtest.Run(t, batch(other, "--append")...).Want(t, terminal.ExitUnknown)
	if got := read(); !strings.HasPrefix(got, before) || strings.Count(got, "\n") != 3 {
		t.Errorf("appended: %q", got)
	}
	commandtest.Run(t, batch(other, "--overwrite")...).Want(t, terminal.ExitUnknown)
	if got := read(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "idemp:o:c") {
		t.Errorf("overwritten: %q", got)
	}
	for text, ours := range map[string]bool{"": true, `{"row":1,"ke`: true, "notes of mine\n": false, "{\"row\":9,\"key\":\"x\"}\n": false, "{\"row\":1,\"key\":\"idemp:o:a~2\"}\n": false} {
		commandtest.WriteFile(t, out, text)
		if want := map[bool]int{true: terminal.ExitUnknown, false: terminal.ExitUsage}[ours]; commandtest.Run(t, batch(file)...).Status != want {
			t.Errorf("%q: status is not %d", text, want)
		}
	}
	commandtest.WriteFile(t, out, "torn")
	commandtest.Run(t, batch(file, "--append")...).Want(t, terminal.ExitUnknown)
	if got := read(); !strings.HasPrefix(got, "torn\n{") {
		t.Errorf("appended: %q", got)
	}
	commandtest.Run(t, batch(file, "--append", "--overwrite")...).Usage(t, "oncehttp: --append and --overwrite: say one")
}

// TestOutOfALongerBatch: lines of another batch are not replaced by one whose first row they have, too.
func TestOutOfALongerBatch(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
	dir := t.TempDir()
	long := commandtest.WriteFile(t, filepath.Join(dir, "long.csv"), "id\n1\n2\n3\n")
	short := commandtest.WriteFile(t, filepath.Join(dir, "short.csv"), "id\n1\n2\n")
	out := filepath.Join(dir, "lines")
	batch := func(file string) []string {
		return []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--new-journal", "--out", out}
	}
	commandtest.Run(t, batch(long)...).Want(t, terminal.ExitOK)
	commandtest.Run(t, batch(short)...).Want(t, terminal.ExitUsage).WantErr(t, "holds something else than an earlier run of this batch")
	commandtest.Run(t, batch(long)...).Want(t, terminal.ExitOK)
}
