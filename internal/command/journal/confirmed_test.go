package journal_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestActsOnASuccess: what the API has confirmed stays so, whatever a person says. Each refusal has the next step, where a payment is not
// in the API's own list; what agrees with the answer has none.
func TestActsOnASuccess(t *testing.T) {
	t.Parallel()
	status := http.StatusCreated
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":"no"}`)
	})
	j := commandtest.JournalIn(t)
	commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", j).Want(t, terminal.ExitOK)
	status = http.StatusBadRequest
	commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", "refused", "--journal", j).Want(t, terminal.ExitRefused)
	const step = "; its answer 201 is final: if the API's own list lacks it, send it alone under a new key: send --key NEWKEY, or batch a file of such rows only, with another text in --key and --new-journal\n"
	for name, c := range map[string]struct {
		args  []string
		steps bool
	}{
		"settle --absent":   {[]string{"settle", "k", "--absent", "--yes"}, true},
		"settle --happened": {[]string{"settle", "k", "--happened"}, false},
		"unsettle":          {[]string{"unsettle", "k", "--reason", "r"}, true},
		"redrive":           {[]string{"redrive", "k", "--reason", "r"}, true},
		"redrive --told":    {[]string{"redrive", "k", "--reason", "r", "--told"}, true},
		"abandon":           {[]string{"abandon", "k", "--yes"}, true},
		"rekey":             {[]string{"rekey", "k", "k2", "--reason", "r"}, true},
		"settle, refused":   {[]string{"settle", "refused", "--absent", "--yes"}, false},
		"unsettle, refused": {[]string{"unsettle", "refused", "--reason", "r"}, false},
	} {
		got := commandtest.Run(t, append(append([]string{"journal"}, c.args...), "--journal", j)...)
		if got.Status == terminal.ExitOK || strings.HasSuffix(got.Err, step) != c.steps || strings.Contains(got.Err, "say --told") || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%s: status %d, stderr\n%s", name, got.Status, got.Err)
		} else {
			t.Log(name, got.Err)
		}
	}
}

// TestActsOnAnAccepted: a 202 is no end at the API. So no advice of a new key is made, which would pay twice.
func TestActsOnAnAccepted(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"id":"1"}`)
	})
	j := commandtest.JournalIn(t)
	commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", j).Want(t, terminal.ExitOK)
	for _, args := range [][]string{{"settle", "k", "--absent", "--yes"}, {"redrive", "k", "--reason", "r", "--told"}, {"rekey", "k", "k2", "--reason", "r"}} {
		got := commandtest.Run(t, append(append([]string{"journal"}, args...), "--journal", j)...)
		const step = "; the API has accepted it with 202, and may still do it: send it under no other key unless the API says that it never will\n"
		if got.Status == terminal.ExitOK || !strings.HasSuffix(got.Err, step) || strings.Contains(got.Err, "NEWKEY") {
			t.Errorf("%s: status %d, stderr\n%s", args[0], got.Status, got.Err)
		}
	}
}
