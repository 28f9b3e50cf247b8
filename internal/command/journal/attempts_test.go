package journal_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestAttemptsOfRuns: after a run that ended by itself the attempts are all counted, and no plus stands behind them: in stuck, list, show and
// report, in a file and on each server. Where a process was killed, one does.
func TestAttemptsOfRuns(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	look := func(t *testing.T, journal, attempts string) {
		t.Helper()
		for _, command := range []string{"stuck", "list"} {
			if got := commandtest.Run(t, "journal", command, "--columns", "attempts", "--journal", journal).Want(t, terminal.ExitOK).Out; got != "ATTEMPTS\n"+attempts+"\n" {
				t.Errorf("%s: %q, want %s", command, got, attempts)
			}
		}
		if got := commandtest.Run(t, "journal", "show", "o:a", "--journal", journal).Want(t, terminal.ExitOK).Out; !strings.Contains(got, "; "+attempts+" attempts, ") {
			t.Errorf("show: want %s in\n%s", attempts, got)
		}
	}
	run := func(t *testing.T, journal, again string) {
		t.Helper()
		file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\na\n")
		batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "2", "--journal", journal)
		commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
		look(t, journal, "2")
		commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
		look(t, journal, again)
	}
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		run(t, commandtest.JournalIn(t), "4+") // it does not tell if somebody died between the runs
	})
	commandtest.OnServers(t, func(t *testing.T, journal string) { run(t, journal, "4") })
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		url, arrived, release := commandtest.Blocking(t)
		defer close(release)
		journal := commandtest.JournalIn(t)
		file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\na\n")
		cmd, _ := commandtest.Child(t, commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}", "--journal", journal)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-arrived
		_ = cmd.Process.Kill()
		commandtest.Status(t, cmd)
		look(t, journal, "0+")
	})
}
