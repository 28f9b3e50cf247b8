package journal_test

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/journal"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/mockserver"
)

// The formats show the same operations; --sort puts the greatest first.
func TestJournalListFormats(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, commandtest.StartMock(t, mockserver.Config{}))
	list := func(args ...string) string {
		return commandtest.Run(t, append([]string{"journal", "list", "--journal", j}, args...)...).Want(t, terminal.ExitOK).Out
	}
	rows, err := csv.NewReader(strings.NewReader(list("--format", "csv"))).ReadAll()
	if err != nil || len(rows) != 4 || rows[0][0] != "key" || rows[3][0] != "idemp:o:c" || rows[3][3] != "done" {
		t.Errorf("csv: %q, %v", rows, err)
	}
	var array []view.Record
	if err := json.Unmarshal([]byte(list("--format", "json")), &array); err != nil || len(array) != 3 || array[2].Result != results.Done {
		t.Errorf("json: %+v, %v", array, err)
	}
	if err := json.Unmarshal([]byte(list("none", "--format", "json")), &array); err != nil || len(array) != 0 {
		t.Errorf("an empty array: %+v, %v", array, err)
	}
	if n := strings.Count(list("--format", "ndjson", "--limit", "2"), "\n"); n != 2 {
		t.Errorf("ndjson with a limit: %d lines", n)
	}
	newest := list("--sort", "created", "--limit", "1", "--format", "ndjson")
	if !strings.Contains(newest, "idemp:o:c") || strings.Count(newest, "\n") != 1 {
		t.Errorf("the newest: %s", newest)
	}
	if got := list("--result", "done"); strings.Contains(got, "idemp:o:a") || !strings.Contains(got, "idemp:o:c") {
		t.Errorf("done: %s", got)
	}
	for _, bad := range [][]string{{"--sort", "created"}, {"--sort", "x", "--limit", "1"}, {"--limit", "-1"}, {"--format", "xml"}} {
		commandtest.Run(t, append([]string{"journal", "list", "--journal", j}, bad...)...).Want(t, terminal.ExitUsage)
	}
}

// Counts, percentiles and the histogram agree with the records.
func TestJournalStats(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, commandtest.StartMock(t, mockserver.Config{}))
	var st journal.Stats
	if err := json.Unmarshal([]byte(commandtest.Run(t, "journal", "stats", "--journal", j, "--json").Want(t, terminal.ExitOK).Out), &st); err != nil {
		t.Fatal(err)
	}
	if st.Operations != 3 || st.States["pending"] != 2 || st.Results[results.Done] != 1 || st.Statuses[201] != 1 || st.Ages[0] != 2 || st.FileBytes == 0 {
		t.Errorf("%+v", st)
	}
	text := commandtest.Run(t, "journal", "stats", "--journal", j).Want(t, terminal.ExitOK).Out
	if !strings.HasPrefix(text, "3 operations, ") || !strings.Contains(text, "  under 1m    "+strings.Repeat("█", 40)+" 2\n") {
		t.Errorf("text\n%s", text)
	}
}

// The page needs a file to be written to, which is not the journal, and puts the
// worst first.
func TestJournalReport(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, commandtest.StartMock(t, mockserver.Config{}))
	commandtest.Run(t, "journal", "report", "--journal", j).Usage(t, "oncehttp: --out is required")
	commandtest.Run(t, "journal", "report", "--journal", j, "--out", j).Want(t, terminal.ExitUsage)
	page := t.TempDir() + "/page.html"
	if got := commandtest.Run(t, "journal", "report", "--journal", j, "--out", page).Want(t, terminal.ExitOK); got.Out != "wrote "+page+": 3 operations\n" {
		t.Errorf("stdout %q", got.Out)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	first, last := strings.Index(string(b), "idemp:o:a"), strings.Index(string(b), "idemp:o:c")
	if first < 0 || last < first || strings.Contains(string(b), "q=hidden") {
		t.Errorf("unknown at %d, done at %d; or a query string is in the page", first, last)
	}
}
