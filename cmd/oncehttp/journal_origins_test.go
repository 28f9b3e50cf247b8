package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
)

// TestJournalOrigins: where work has sent with credentials, a command without them sends nothing, and says what to do; once the origin is
// taken off, it sends again.
func TestJournalOrigins(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	j := filepath.Join(t.TempDir(), "j.db")
	origin := m.URL()
	enqueueOne(t, j, origin+"/payments", "first", "{}")
	run(t, "journal", "resume", "--journal", j, "-H", "Authorization: Bearer live").want(t, exitOK)
	sends := m.Ledger().Snapshot().Sends
	if sends != 1 {
		t.Fatalf("%d sends", sends)
	}
	bare := []string{"send", "POST", origin + "/payments", "-d", "{}", "--key", "second", "--journal", j}
	got := run(t, bare...).want(t, exitUsage)
	if !strings.Contains(got.err, "journal origins --remove '"+origin+"'") || m.Ledger().Snapshot().Sends != sends {
		t.Errorf("%s\n%d sends", got.err, m.Ledger().Snapshot().Sends-sends)
	}
	enqueueOne(t, j, origin+"/payments", "third", "{}")
	if got := run(t, "journal", "resume", "--journal", j); got.status == exitOK || m.Ledger().Snapshot().Sends != sends {
		t.Errorf("resume ends with %d: %s%s", got.status, got.out, got.err)
	}
	tell := run(t, "journal", "origins", origin, "https://elsewhere.example", "--journal", j).want(t, exitOK)
	if want := origin + ": with credentials only (" + origin + ")\nhttps://elsewhere.example: no client has said that it sends there with credentials\n"; tell.out != want {
		t.Errorf("origins\n%s, want\n%s", tell.out, want)
	}
	run(t, "journal", "origins", "--remove", origin, "--journal", j).want(t, exitUsage) // it cannot ask
	run(t, "journal", "origins", "--remove", "https://elsewhere.example", "--yes", "--journal", j).want(t, exitUsage)
	for _, wrong := range [][]string{{}, {origin, "--remove", origin}, {"api.example.com"}, {origin, "--account", "a"}} {
		run(t, append([]string{"journal", "origins", "--journal", j}, wrong...)...).want(t, exitUsage)
	}
	if got := run(t, "journal", "origins", "--remove", origin, "--yes", "--journal", j).want(t, exitOK); got.out != "removed: "+origin+"\n" {
		t.Errorf("remove: %q", got.out)
	}
	run(t, bare...).want(t, exitOK)
	run(t, "journal", "resume", "--journal", j).want(t, exitOK)
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
		got := run(t, "journal", "stuck", "--journal", j).want(t, exitOK)
		if rows := strings.Split(got.out, "\n"); len(rows) != 3 || !strings.Contains(rows[1], needs) {
			t.Errorf("stuck, want %q\n%s", needs, got.out)
		}
		got = run(t, "journal", "stuck", "--json", "--journal", j).want(t, exitOK)
		if !strings.Contains(got.out, `"needs":"`+needs) {
			t.Errorf("stuck --json, want %q\n%s", needs, got.out)
		}
	}
	test := func(t *testing.T, j string) {
		m := startMock(t, mockserver.Config{})
		origin := m.URL()
		enqueueOne(t, j, origin+"/payments", "first", "{}")
		stuck(t, j, "profile draft-07@")
		run(t, "journal", "resume", "--journal", j, "-H", "Authorization: Bearer live").want(t, exitOK)
		enqueueOne(t, j, origin+"/payments", "second", "{}")
		stuck(t, j, "Authorize for "+origin+", profile draft-07@")
		at, err := parsePlace(j)
		if err != nil {
			t.Fatal(err)
		}
		ses, err := openSession(at, oncehttp.Config{}, false) // a file is held now
		if err != nil {
			t.Fatal(err)
		}
		stuck(t, j, "Authorize for "+origin+", profile draft-07@")
		if err := ses.close(); err != nil {
			t.Error(err)
		}
		run(t, "journal", "origins", "--remove", origin, "--yes", "--journal", j).want(t, exitOK)
		stuck(t, j, "profile draft-07@")
	}
	t.Run("a file", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(shortDir(t), "j.db"))
	})
	onServers(t, test)
}
