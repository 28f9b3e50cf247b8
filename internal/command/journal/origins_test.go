package journal_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// TestJournalOrigins: where work has sent with credentials, a command without them sends nothing, and says what to do; once the origin is
// taken off, it sends again.
func TestJournalOrigins(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	j := filepath.Join(t.TempDir(), "j.db")
	origin := m.URL()
	commandtest.EnqueueOne(t, j, origin+"/payments", "first", "{}")
	commandtest.Run(t, "journal", "resume", "--journal", j, "-H", "Authorization: Bearer live").Want(t, terminal.ExitOK)
	sends := m.Ledger().Snapshot().Sends
	if sends != 1 {
		t.Fatalf("%d sends", sends)
	}
	bare := []string{"send", "POST", origin + "/payments", "-d", "{}", "--key", "second", "--journal", j}
	got := commandtest.Run(t, bare...).Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, "journal origins --remove '"+origin+"'") || m.Ledger().Snapshot().Sends != sends {
		t.Errorf("%s\n%d sends", got.Err, m.Ledger().Snapshot().Sends-sends)
	}
	commandtest.EnqueueOne(t, j, origin+"/payments", "third", "{}")
	if got := commandtest.Run(t, "journal", "resume", "--journal", j); got.Status == terminal.ExitOK || m.Ledger().Snapshot().Sends != sends {
		t.Errorf("resume ends with %d: %s%s", got.Status, got.Out, got.Err)
	}
	tell := commandtest.Run(t, "journal", "origins", origin, "https://elsewhere.example", "--journal", j).Want(t, terminal.ExitOK)
	if want := origin + ": with credentials only (" + origin + ")\nhttps://elsewhere.example: no client has said that it sends there with credentials\n"; tell.Out != want {
		t.Errorf("origins\n%s, want\n%s", tell.Out, want)
	}
	commandtest.Run(t, "journal", "origins", "--remove", origin, "--journal", j).Want(t, terminal.ExitUsage) // it cannot ask
	commandtest.Run(t, "journal", "origins", "--remove", "https://elsewhere.example", "--yes", "--journal", j).Want(t, terminal.ExitUsage)
	for _, wrong := range [][]string{{}, {origin, "--remove", origin}, {"api.example.com"}, {origin, "--account", "a"}} {
		commandtest.Run(t, append([]string{"journal", "origins", "--journal", j}, wrong...)...).Want(t, terminal.ExitUsage)
	}
	if got := commandtest.Run(t, "journal", "origins", "--remove", origin, "--yes", "--journal", j).Want(t, terminal.ExitOK); got.Out != "removed: "+origin+"\n" {
		t.Errorf("remove: %q", got.Out)
	}
	commandtest.Run(t, bare...).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "resume", "--journal", j).Want(t, terminal.ExitOK)
	if now := m.Ledger().Snapshot().Sends; now != sends+2 {
		t.Errorf("%d sends after it was taken off, want 2", now-sends)
	}
}

// TestStuckNeedsAuthorize: what no client without credentials may send, since others send there with some, is told with that need: of a
// file, of one that another command holds, and on servers.
func TestStuckNeedsAuthorize(t *testing.T) {
	t.Parallel()
	stuck := func(t *testing.T, j, needs string) {
		t.Helper()
		got := commandtest.Run(t, "journal", "stuck", "--journal", j).Want(t, terminal.ExitOK)
		if rows := strings.Split(got.Out, "\n"); len(rows) != 3 || !strings.Contains(rows[1], needs) {
			t.Errorf("stuck, want %q\n%s", needs, got.Out)
		}
		got = commandtest.Run(t, "journal", "stuck", "--json", "--journal", j).Want(t, terminal.ExitOK)
		if !strings.Contains(got.Out, `"needs":"`+needs) {
			t.Errorf("stuck --json, want %q\n%s", needs, got.Out)
		}
	}
	test := func(t *testing.T, j string) {
		m := commandtest.StartMock(t, mockserver.Config{})
		origin := m.URL()
		commandtest.EnqueueOne(t, j, origin+"/payments", "first", "{}")
		stuck(t, j, "profile draft-07@")
		commandtest.Run(t, "journal", "resume", "--journal", j, "-H", "Authorization: Bearer live").Want(t, terminal.ExitOK)
		commandtest.EnqueueOne(t, j, origin+"/payments", "second", "{}")
		stuck(t, j, "Authorize for "+origin+", profile draft-07@")
		at, err := place.Parse(j)
		if err != nil {
			t.Fatal(err)
		}
		ses, err := session.OpenSession(at, oncehttp.Config{}) // a file is held now
		if err != nil {
			t.Fatal(err)
		}
		stuck(t, j, "Authorize for "+origin+", profile draft-07@")
		if err := ses.Close(); err != nil {
			t.Error(err)
		}
		commandtest.Run(t, "journal", "origins", "--remove", origin, "--yes", "--journal", j).Want(t, terminal.ExitOK)
		stuck(t, j, "profile draft-07@")
	}
	t.Run("a file", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(commandtest.ShortDir(t), "j.db"))
	})
	commandtest.OnServers(t, test)
}
