package command_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/journal"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// Numbers are those of what was counted, and no line says more than is known.
func TestStatsSayWhatIsKnown(t *testing.T) {
	t.Parallel()
	j := commandtest.AuditJournal(t)
	var st journal.Stats
	if err := json.Unmarshal([]byte(commandtest.Run(t, "journal", "stats", "--json", "--journal", j).Want(t, terminal.ExitOK).Out), &st); err != nil {
		t.Fatal(err)
	}
	if st.Attempts.P50 != 1 || st.Attempts.P95 != 1 || st.Attempts.Max != 1 {
		t.Errorf("attempts %+v, want one each", st.Attempts)
	}
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		for _, args := range [][]string{{"journal", "stats"}, {"journal", "stats", "--json"}} {
			if got := commandtest.Run(t, append(args, "--journal", journal)...).Want(t, terminal.ExitOK); strings.Contains(got.Out, "on average") || strings.Contains(got.Out, "file_bytes") || strings.Contains(got.Out, "bytes_per_operation") {
				t.Errorf("of an empty journal in no file: %q", got.Out)
			}
		}
	})
}

// A body that was not kept is not "0 bytes".
func TestShowOfADroppedBody(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, strings.Repeat("x", results.AnswerBytesMax+1))
	})
	j := filepath.Join(t.TempDir(), "j.db")
	commandtest.Run(t, "send", "POST", s.URL, "--key", "k", "--journal", j).Want(t, terminal.ExitOK)
	if got := commandtest.Run(t, "journal", "show", "k", "--journal", j).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "\n  answer    201, its body was not kept\n") {
		t.Errorf("stdout\n%s", got.Out)
	}
}

// A page with a filter says so beside its count.
func TestReportSaysItsFilter(t *testing.T) {
	t.Parallel()
	j := commandtest.AuditJournal(t)
	page := j + ".html"
	for want, args := range map[string][]string{
		", all of it: 7 operations, as of":                                              nil,
		", what <code>idemp:* --state pending,held</code> selects: 2 operations, as of": {"idemp:*", "--state", "pending,held"},
	} {
		commandtest.Run(t, append([]string{"journal", "report", "--journal", j, "--out", page}, args...)...).Want(t, terminal.ExitOK)
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v, the page lacks %q", err, want)
		}
	}
}

// resume --dry-run shows how operations stand, not how they would; and whom they are left to.
func TestResumeDryRunSaysHowOperationsStand(t *testing.T) {
	t.Parallel()
	down := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	dir := commandtest.ShortDir(t)
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\na\n")
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", down.URL, "--key", "o:{id}", "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	j := file + ".oncehttp.db"
	commandtest.Run(t, "journal", "restored", "--journal", j, "--taken", time.Now().UTC().Format(time.RFC3339Nano)).Want(t, terminal.ExitOK)
	got := commandtest.Run(t, "journal", "resume", "--restored", "--dry-run", "--journal", j).Want(t, terminal.ExitOK)
	if strings.Contains(got.Out, "  pending  ") || !strings.Contains(got.Out, "  held (restored)  ") {
		t.Errorf("stdout\n%s", got.Out)
	}
	url, arrived, release := commandtest.Blocking(t)
	sent := filepath.Join(dir, "s.db")
	end := commandtest.Beside(arrived, commandtest.Fast("send", "POST", url, "--key", "k", "--max-attempts", "1", "--journal", sent)...)
	got = commandtest.Run(t, "journal", "resume", "--dry-run", "--journal", sent)
	close(release)
	end()
	if got.Want(t, terminal.ExitOK); !strings.Contains(got.Out, "wait: sent by worker ") {
		t.Errorf("stdout\n%s", got.Out)
	}
}

// The shells are told the words that a flag takes, also behind others of a list.
func TestCompletionOfWords(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"stripe\nstripe-v2\n":         {"batch", "--profile", "stri"},
		"X-Passcode\n":                {"send", "-H", "X-Passcode: a", "-H", "Accept: b", "-H", "@auth", "--secret-header", "X"},
		"held\n":                      {"journal", "list", "--state", "he"},
		"held,pending\n":              {"journal", "list", "--state", "held,pe"},
		"declined\n":                  {"journal", "stats", "--result", "dec"},
		"finished\n":                  {"journal", "list", "--sort", "f"},
		"major\nminor\n":              {"audit", "--our-unit", "m"},
		"draft-07\ndraft-07-quoted\n": {"check", "--profile", "draft-"},
		"mismatch,unknown\n":          {"journal", "report", "--result", "mismatch,u"},
	} {
		got := commandtest.Run(t, append([]string{"__complete"}, args...)...).Want(t, terminal.ExitOK)
		out := strings.Join(strings.Fields(strings.ReplaceAll(got.Out, ":4", "")), "\n") + "\n"
		if !sameWords(out, want) {
			t.Errorf("%q: %q, want %q", args, out, want)
		}
	}
}

// sameWords compares lists of lines in any order.
func sameWords(a, b string) bool {
	for _, word := range strings.Fields(b) {
		if !strings.Contains(a, word+"\n") {
			return false
		}
	}
	return len(strings.Fields(a)) == len(strings.Fields(b))
}
