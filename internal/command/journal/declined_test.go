package journal_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestDeclinedIsKnownLater: stats, list, report, show and export have the results of a batch with --declined, without its being said again; on every
// kind of journal, in a copy, and beside a journal whose runs were told nothing.
func TestDeclinedIsKnownLater(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"b"`) {
			_, _ = io.WriteString(w, `{"status":"failed"}`)
		}
	})
	test := func(t *testing.T, journal string, declined ...string) {
		t.Helper()
		file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id,amount\na,5\nb,7\n")
		args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--journal", journal, "--new-journal", "--quiet"}
		status := terminal.ExitOK
		for _, text := range declined {
			args, status = append(args, "--declined", text), terminal.ExitRefused
		}
		commandtest.Run(t, args...).Want(t, status)
		commandtest.Run(t, args[:9]...).Want(t, status) // without --declined
		wantDeclined(t, journal, status == terminal.ExitRefused)
	}
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		journal := filepath.Join(t.TempDir(), "j.db")
		test(t, journal, "/status=failed", "/status=no")
		commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", journal, "--declined", "/code=7").Want(t, terminal.ExitOK)
		if got := commandtest.Run(t, "journal", "stats", "--journal", journal, "--json").Want(t, terminal.ExitOK).Out; !strings.Contains(got, `"declined_by":["/status=failed","/status=no","/code=7"]`) {
			t.Errorf("stats: %s", got)
		}
		if got := commandtest.Run(t, "journal", "stats", "--journal", journal, "--declined", "/code=8").Want(t, terminal.ExitOK).Out; strings.Contains(got, "declined") {
			t.Errorf("stats with --declined: %s", got)
		}
		long := "/status=" + strings.Repeat("x", 250)
		if got := commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", "k2", "--journal", journal, "--declined", long).Want(t, terminal.ExitOK); !strings.Contains(got.Err, "the journal keeps at most 256 bytes of --declined") {
			t.Errorf("send: stderr %s", got.Err)
		}
		export := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "export.csv"), "key\nidemp:o:a\nk\nk2\n")
		if got := commandtest.Run(t, "audit", "--journal", journal, "--against", export, "--match", "key").Want(t, terminal.ExitOK); !strings.Contains(got.Err, "declined is also /status=failed or") {
			t.Errorf("audit: stderr %s", got.Err)
		}
		commandtest.EnqueueOne(t, journal, s.URL, "later", `{"id":"b"}`)
		if got := commandtest.Run(t, "journal", "resume", "--journal", journal).Want(t, terminal.ExitRefused).Only(t); got.Result != "declined" {
			t.Errorf("resume: %+v", got)
		}
		commandtest.Run(t, "journal", "compact", "--journal", journal).Want(t, terminal.ExitOK)
		wantDeclined(t, journal, true)
	})
	t.Run("told nothing", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "j.db"))
	})
	commandtest.OnServers(t, func(t *testing.T, journal string) { test(t, journal, "/status=failed") })
}

// TestStatsSumsByCurrency: amounts of several currencies are never added up, also without --currency.
func TestStatsSumsByCurrency(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id,amount,currency\na,5,EUR\nb,7,USD\nc,1,EUR\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--quiet").Want(t, terminal.ExitOK)
	got := commandtest.Run(t, "journal", "stats", "--journal", file+".oncehttp.db", "--sum", "/amount").Want(t, terminal.ExitOK).Out
	if !strings.Contains(got, "total /amount EUR: 6 in 2 operations = 6 in 2 done\ntotal /amount USD: 7 in 1 operation = 7 in 1 done\n") {
		t.Errorf("%s", got)
	}
}

// TestDeclinedIsTakenBack: a value of --declined that was a mistake is taken back, on every kind of journal. What it alone made declined is done again for
// all that read the journal, also for batch. Said again, it holds again.
func TestDeclinedIsTakenBack(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"b"`) {
			_, _ = io.WriteString(w, `{"status":"failed"}`)
		}
	})
	test := func(t *testing.T, journal string) {
		t.Helper()
		file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id,amount\na,5\nb,7\n")
		batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--journal", journal, "--new-journal", "--quiet"}
		declined := []string{"journal", "declined", "--journal", journal}
		commandtest.Run(t, append(batch, "--declined", "/status=failed", "--declined", "/status=no")...).Want(t, terminal.ExitRefused)
		if got := commandtest.Run(t, declined...).Want(t, terminal.ExitOK).Out; got != "/status=failed\n/status=no\n" {
			t.Errorf("journal declined: %q", got)
		}
		got := commandtest.Run(t, append(declined, "--forget", "/status=failed", "--forget", "/state=failed")...).Want(t, terminal.ExitUsage).Err
		if !strings.Contains(got, "/state=failed: the journal does not keep it") {
			t.Errorf("--forget of what is not there: %s", got)
		}
		wantDeclined(t, journal, true)
		commandtest.Run(t, append(declined, "--forget", "/status=failed")...).Want(t, terminal.ExitOK)
		commandtest.Run(t, append(declined, "--forget", "/status=no")...).Want(t, terminal.ExitOK)
		wantDeclined(t, journal, false)
		if got := commandtest.Run(t, declined...).Want(t, terminal.ExitOK); got.Out != "" || !strings.Contains(got.Err, "no run has said --declined") {
			t.Errorf("journal declined after all were taken back: %q, stderr %s", got.Out, got.Err)
		}
		commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
		commandtest.Run(t, append(batch, "--declined", "/status=failed")...).Want(t, terminal.ExitRefused)
		wantDeclined(t, journal, true)
	}
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "j.db"))
	})
	commandtest.OnServers(t, test)
}

// wantDeclined wants the one operation o:b of a journal to be declined for all that read it, or for none.
func wantDeclined(t *testing.T, journal string, want bool) {
	t.Helper()
	page := filepath.Join(t.TempDir(), "page.html")
	for _, args := range [][]string{{"stats"}, {"list", "o:b"}, {"show", "o:b"}, {"export"}, {"report", "--out", page}} {
		got := commandtest.Run(t, append(append([]string{"journal"}, args...), "--journal", journal)...).Want(t, terminal.ExitOK).Out
		if args[0] == "report" {
			got = readFile(t, page)
			got = got[strings.Index(got, "<body"):]
		}
		if strings.Contains(got, "declined") != want {
			t.Errorf("%s: declined is not %t in\n%s", args[0], want, got)
		}
	}
	if got := commandtest.Run(t, "journal", "list", "--result", "declined", "--journal", journal).Want(t, terminal.ExitOK).Out; strings.Contains(got, "o:b") != want {
		t.Errorf("list --result declined:\n%s", got)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSettleOfAnUnreadAnswer: --declined makes a success unknown whose answer was too long to be kept. It cannot be settled; the refusal names the way to count it as
// done, and that command does it.
func TestSettleOfAnUnreadAnswer(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"padding":"`+strings.Repeat("x", 1<<20)+`"}`)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\na\n")
	j := file + ".oncehttp.db"
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--quiet"}
	commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
	settle := []string{"journal", "settle", "o:a", "--happened", "--journal", j}
	if got := commandtest.Run(t, settle...); strings.Contains(got.Err, "--forget") {
		t.Errorf("of a done one: %q", got.Err)
	}
	commandtest.Run(t, append(batch, "--declined", "/errors/0/message=no money")...).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
	way := " --forget '/errors/0/message=no money' --journal " + j
	got := commandtest.Run(t, settle...).Want(t, terminal.ExitUsage)
	got.WantErr(t, "oncehttp journal declined"+way)
	commandtest.Run(t, "journal", "declined", "--forget", "/errors/0/message=no money", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
}
