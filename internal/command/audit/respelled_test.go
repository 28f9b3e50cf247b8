package audit_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestRespelledReferences: keys without their first word or their escapes, and numbers without zeros in front, are known in an export, so that no paid row is to be sent anew.
func TestRespelledReferences(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n001\na b\n0\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}").Want(t, terminal.ExitOK)
	for export, match := range map[string][]string{
		"key,status\no:001,ok\no:a%20b,ok\no:0,ok\n":               {"--match", "key"},
		"key,status\nidemp:o:1,ok\nidemp:o:a b,ok\nidemp:o:0,ok\n": {"--match", "key"},
		"id,status\n1,ok\na b,ok\n0,ok\n":                          {"--match", "id", "--reference", "/id"},
	} {
		got := commandtest.Run(t, append([]string{"audit", "--journal", file + ".oncehttp.db", "--against", commandtest.WriteFile(t, "export.csv", export), "--where", "status=ok"}, match...)...).Want(t, terminal.ExitFindings)
		if strings.Contains(got.Out+got.Err, "new key") || !strings.Contains(got.Out, "send it under no other key: write the references alike") {
			t.Errorf("%q: %s%s", export, got.Out, got.Err)
		}
	}
}

// TestMissingBesideALaterGeneration: an operation that counts as done, and is not in the exports, is not to be sent anew where its next generation is done.
func TestMissingBesideALaterGeneration(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		code := `{"code":"paid"}`
		if !strings.HasSuffix(r.Header.Get("Idempotency-Key"), `:gen=2"`) && !strings.HasSuffix(r.Header.Get("Idempotency-Key"), ":gen=2") {
			code = `{"code":"refused"}`
		}
		_, _ = io.WriteString(w, code)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
	at := file + ".oncehttp.db"
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--declined", "/code=refused"}
	commandtest.Run(t, batch...).Want(t, terminal.ExitRefused)
	commandtest.Run(t, append(batch, "--generation", "2")...).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "declined", "--forget", "/code=refused", "--journal", at).Want(t, terminal.ExitOK)
	export := commandtest.WriteFile(t, "export.csv", "key,status\nidemp:o:1:gen=2,ok\n")
	got := commandtest.Run(t, "audit", "--journal", at, "--against", export, "--match", "key", "--where", "status=ok").Want(t, terminal.ExitFindings)
	if strings.Contains(got.Out, "new key") || !strings.Contains(got.Out, "stands in its place, and is done here, too") {
		t.Errorf("%s", got.Out)
	}
}

// TestPrunedDeclines: once answers are pruned, --declined cannot be looked for in them: neither a batch, nor a later generation, nor stats calls such rows done.
func TestPrunedDeclines(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"code":"refused"}`) })
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
	at := file + ".oncehttp.db"
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--declined", "/code=refused"}
	commandtest.Run(t, batch...).Want(t, terminal.ExitRefused)
	commandtest.Run(t, "journal", "prune", "--keep-answer", "-1s", "--yes", "--journal", at).Want(t, terminal.ExitOK)
	for _, more := range [][]string{nil, {"--generation", "2"}} {
		got := commandtest.Run(t, append(batch, more...)...).Want(t, terminal.ExitUnknown)
		if !strings.Contains(got.Err, "1 unknown") || strings.Contains(got.Err, "run the same command again") || !strings.Contains(got.Out, "answer_unread") {
			t.Errorf("%v: %s%s", more, got.Out, got.Err)
		}
	}
	if got := commandtest.Run(t, "journal", "stats", "--journal", at).Want(t, terminal.ExitOK); strings.Contains(got.Out, "done") {
		t.Errorf("stats: %s", got.Out)
	}
	if n := s.Sends.Load(); n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}
