package place_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// A batch on a server, broken and made again, has each effect once; and every command that
// looks at a journal, or ends what is in doubt, works there.
func TestServerJournal(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		m := commandtest.StartMock(t, mockserver.Config{})
		m.Inject(mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropAfter})
		file := commandtest.WriteFile(t, "in.csv", "id\na\nb\nc\nd\n")
		args := commandtest.Fast("batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}", "--workers", "1", "--journal", journal)
		commandtest.Run(t, append(args, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
		if _, err := os.Stat(file + ".oncehttp.db"); err == nil {
			t.Error("there is a journal beside the file, too")
		}
		look := func(want int, args ...string) commandtest.Ran {
			t.Helper()
			return commandtest.Run(t, append(args, "--journal", journal)...).Want(t, want)
		}
		if out := look(terminal.ExitOK, "journal", "list", "--state", "pending").Out; strings.Count(out, "\n") != 4 {
			t.Errorf("list\n%s", out)
		}
		look(terminal.ExitOK, "journal", "settle", "idemp:o:a", "--happened")
		look(terminal.ExitOK, "journal", "abandon", "idemp:o:b", "--yes")
		if out := look(terminal.ExitOK, "journal", "resume").Out; strings.Count(out, "\n") != 1 || !strings.Contains(out, "idemp:o:c") {
			t.Errorf("resume\n%s", out)
		}
		sends := m.Ledger().Effects("idemp:o:c")
		if got := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown).Lines(t); len(got) != 4 || got[2].Source != "journal" || got[3].Source != "journal" {
			t.Errorf("the batch again: %+v", got)
		}
		if now := m.Ledger().Effects("idemp:o:c"); sends != 1 || now != 1 {
			t.Errorf("%d effects, then %d, want 1", sends, now)
		}
		look(terminal.ExitOK, "send", "POST", m.URL()+"/payments", "-d", `{"id":"e"}`, "--key", "e")
		if out := look(terminal.ExitOK, "journal", "show", "e", "--json").Out; !strings.Contains(out, `"confirmed"`) {
			t.Errorf("show\n%s", out)
		}
		if out := look(terminal.ExitOK, "journal", "export").Out; strings.Count(out, "\n") != 5 {
			t.Errorf("export\n%s", out)
		}
		for _, args := range [][]string{{"stats"}, {"stuck"}, {"report", "--out", commandtest.WriteFile(t, "report.html", "")}, {"verify"}} {
			look(terminal.ExitOK, append([]string{"journal"}, args...)...)
		}
		export := commandtest.WriteFile(t, "export.csv", "key\nidemp:o:a\nidemp:o:b\nidemp:o:c\nidemp:o:d\ne\n")
		look(terminal.ExitFindings, "audit", "--against", export, "--match", "key") // b was abandoned
		if out := look(terminal.ExitOK, "journal", "prune", "--keep-answer", "-1s", "--yes").Out; out != "pruned: 5 records\n" {
			t.Errorf("prune: %s", out)
		}
		if err := look(terminal.ExitUsage, "journal", "compact").Err; !strings.Contains(err, "compact is for journals in a file") || strings.Count(err, "\n") != 1 {
			t.Errorf("compact: %s", err)
		}
	})
}

// Resume with a key sends that operation and no other, though the journal hands out leases.
func TestServerResumeKey(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		m := commandtest.StartMock(t, mockserver.Config{})
		m.Inject(mockserver.Fault{Kind: mockserver.DropBefore}, mockserver.Fault{Kind: mockserver.DropBefore}, mockserver.Fault{Kind: mockserver.DropBefore})
		file := commandtest.WriteFile(t, "in.csv", "id\na\nb\nc\n")
		commandtest.Run(t, commandtest.Fast("batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}", "--workers", "1", "--journal", journal, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
		got := commandtest.Run(t, "journal", "resume", "idemp:o:c", "idemp:o:b", "--journal", journal).Want(t, terminal.ExitOK)
		if l := got.Lines(t); len(l) != 2 {
			t.Errorf("resumed\n%s", got.Out)
		}
		for key, want := range map[string]int{"idemp:o:a": 0, "idemp:o:b": 1, "idemp:o:c": 1} {
			if n := m.Ledger().Effects(key); n != want {
				t.Errorf("%s: %d effects, want %d", key, n, want)
			}
		}
	})
}

// Where the server did not say what became of one row's begin, that row is unknown, and the
// batch goes on.
func TestServerUncertainRow(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		file := commandtest.WriteFile(t, "in.csv", "id\na\nb\nc\n")
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
		tx := commandtest.BeginOpen(t, journal, s.URL, "idemp:o:b")
		args := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--workers", "1", "--journal", journal)
		first := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
		if got := first.Lines(t); len(got) != 3 || got[0].Result != results.Done || got[1].Result != results.Unknown || got[2].Result != results.Done {
			t.Errorf("%s%s", first.Out, first.Err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if commandtest.Run(t, args...).Want(t, terminal.ExitOK); s.Sends.Load() != 3 {
			t.Errorf("%d sends, want 3", s.Sends.Load())
		}
	})
}
