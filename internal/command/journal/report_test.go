package journal_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestReportOfRejected: what was rejected and not done since has a row on the page, and the command there names the journal.
func TestReportOfRejected(t *testing.T) {
	t.Parallel()
	status := http.StatusTooManyRequests
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	dir := t.TempDir()
	journal := filepath.Join(dir, "my j.db")
	send := func(key string, want int) {
		commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "-d", "{}", "--key", key, "--journal", journal)...).Want(t, want)
	}
	send("rejected-1", terminal.ExitUnknown)
	send("rejected-2", terminal.ExitUnknown)
	status = http.StatusCreated
	send("rejected-2", terminal.ExitOK)
	page := filepath.Join(dir, "page.html")
	commandtest.Run(t, "journal", "report", "--journal", journal, "--out", page).Want(t, terminal.ExitOK)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<details class="row rejected" data-result="rejected"><summary><code>rejected-1</code><span class="result">rejected</span><span class="state">forgotten</span><span class="status">429</span>`,
		`<details class="row done" data-result="done"><summary><code>rejected-2</code>`,
		"1 operation, as of ", "Beside these 1 had no effect", "oncehttp journal stuck --rejected --journal &#39;" + journal + "&#39;", `<b>1</b>rejected`, "next: run it again",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if n := strings.Count(string(text), "<details class="); n != 2 {
		t.Errorf("%d rows", n)
	}
}
