package journal_test

import (
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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

// TestSettleCommandsOfThePage: the commands that settle an operation on the page can be pasted as they are.
func TestSettleCommandsOfThePage(t *testing.T) {
	t.Parallel()
	for i, want := range []string{"settled as happened: idemp:o:3\n", "settled as absent: idemp:o:3\n"} {
		j := commandtest.DoubtJournal(t)
		page := filepath.Join(t.TempDir(), "page.html")
		commandtest.Run(t, "journal", "report", "--journal", j, "--out", page).Want(t, terminal.ExitOK)
		lines := regexp.MustCompile(`<code>oncehttp (journal settle .*?)</code>`).FindAllStringSubmatch(readFile(t, page), -1)
		if len(lines) != 2 {
			t.Fatalf("%d commands", len(lines))
		}
		args := strings.Fields(html.UnescapeString(lines[i][1]))
		if got := commandtest.Run(t, append(args, "--yes")...).Want(t, terminal.ExitOK).Out; got != want { // nobody can be asked here
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}
