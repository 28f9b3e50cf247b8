package journal_test

import (
	"net/http"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
)

// backup keeps the journal as it stands, and gives a function that puts it back.
type backup func(t *testing.T, journal string) (restore func())

// copied copies a journal's file, which no process holds.
func copied(t *testing.T, journal string) (restore func()) {
	t.Helper()
	kept, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(journal, kept, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// dumped dumps a schema of PostgreSQL, and drops it before it plays the dump back.
func dumped(t *testing.T, journal string) (restore func()) {
	t.Helper()
	u, err := url.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	schema := u.Query().Get("schema")
	u.RawQuery = ""
	dump := filepath.Join(t.TempDir(), "dump.sql")
	client(t, "pg_dump", "--schema", schema, "--file", dump, u.String())
	return func() {
		commandtest.MustExec(t, commandtest.SQLDB(t, "pgx", u.String()), "DROP SCHEMA "+schema+" CASCADE")
		client(t, "psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", dump, u.String())
	}
}

// dumpedMySQL dumps a database of MariaDB, and empties it before it plays the dump back.
func dumpedMySQL(t *testing.T, journal string) (restore func()) {
	t.Helper()
	u, err := url.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	at := []string{"--host=" + u.Hostname(), "--port=" + u.Port(), "--user=" + u.User.Username()}
	dump := filepath.Join(t.TempDir(), "dump.sql")
	client(t, "mariadb-dump", append(at, "--single-transaction", "--result-file="+dump, name)...)
	return func() {
		db := commandtest.MySQLDB(t, u, "")
		commandtest.MustExec(t, db, "DROP DATABASE "+name)
		commandtest.MustExec(t, db, "CREATE DATABASE "+name)
		client(t, "mariadb", append(at, "--execute=source "+dump, name)...)
	}
}

// client runs a program of the database's own.
func client(t *testing.T, name string, args ...string) {
	t.Helper()
	path, err := osexec.LookPath(name)
	if err != nil && os.Getenv("ONCEHTTP_REQUIRE_SERVICES") != "1" {
		t.Skipf("nothing was tested: there is no %s", name)
	}
	if out, err := osexec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// A backup is restored after its operations went on. Nothing that was unfinished in it is
// sent before somebody has looked; an audit tells which; then each has one effect.
func TestRestored(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		testRestored(t, filepath.Join(t.TempDir(), "j.db"), copied)
	})
	for name, keep := range map[string]backup{"postgres": dumped, "mysql": dumpedMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Servers()[name]
			journal := s.Database(t, s.URL(t))
			commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
			testRestored(t, journal, keep)
		})
	}
}

func testRestored(t *testing.T, journal string, keep backup) {
	m := commandtest.StartMock(t, mockserver.Config{})
	batch := func(rows string, want int, args ...string) commandtest.Ran {
		t.Helper()
		file := commandtest.WriteFile(t, "in.csv", "id\n"+rows)
		return commandtest.Run(t, commandtest.Fast(append([]string{"batch", file, "--url", m.URL() + "/payments", "--key", "o:{id}", "--journal", journal, "--workers", "1"}, args...)...)...).Want(t, want)
	}
	// In the backup a is done, b took effect and its answer was lost, c never arrived, and d
	// was enqueued and not sent.
	m.Inject(mockserver.Fault{}, mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropBefore})
	batch("a\nb\nc\n", terminal.ExitUnknown, "--max-attempts", "1")
	commandtest.EnqueueOne(t, journal, m.URL()+"/payments", "idemp:o:d", `{"id":"d"}`)
	taken := time.Now().UTC().Format(time.RFC3339Nano)
	restore := keep(t, journal)
	// Afterwards d is sent, and e is begun; then the journal is lost.
	commandtest.Run(t, "journal", "resume", "idemp:o:d", "--journal", journal).Want(t, terminal.ExitOK)
	batch("e\n", terminal.ExitOK)
	since := time.Now().UTC().Format(time.RFC3339Nano)
	restore()

	first := commandtest.Run(t, "journal", "restored", "--journal", journal, "--taken", taken).Want(t, terminal.ExitOK)
	if first.Out != "held: 3 operations\n" || !strings.Contains(first.Err, "oncehttp audit --journal ") || !strings.Contains(first.Err, "--since "+taken[:19]) {
		t.Errorf("stdout %q, stderr\n%s", first.Out, first.Err)
	}
	if again := commandtest.Run(t, "journal", "restored", "--journal", journal, "--taken", taken).Want(t, terminal.ExitOK); again.Out != "held: 0 operations; 3 operations held as restored already\n" {
		t.Errorf("again: %q", again.Out)
	}
	if out := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitOK).Out; strings.Count(out, "held (restored)") != 3 {
		t.Errorf("list\n%s", out)
	}
	before := m.Ledger().Snapshot().Sends
	commandtest.Run(t, "journal", "resume", "--journal", journal).Want(t, terminal.ExitUnknown)
	if got := batch("a\nb\nc\nd\n", terminal.ExitUnknown).Lines(t); got[0].Result != results.Done || got[1].Result != results.Held || got[2].Result != results.Held || got[3].Result != results.Held {
		t.Errorf("the batch again: %+v", got)
	}
	if now := m.Ledger().Snapshot().Sends; now != before {
		t.Errorf("%d sends of what is held", now-before)
	}

	export := commandtest.WriteFile(t, "export.csv", "key,at\nidemp:o:a,2020-01-01T00:00:00Z\nidemp:o:b,"+since+"\nidemp:o:d,"+since+"\nidemp:o:e,"+since+"\n")
	found := commandtest.Run(t, "audit", "--journal", journal, "--against", export, "--match", "key", "--time", "at", "--since", taken, "--edge", "0s", "--all-rows").Want(t, terminal.ExitFindings)
	for _, want := range []string{
		"settle        idemp:o:b", "settle        idemp:o:d", "foreign         idemp:o:e", "if the provider did not do it: oncehttp journal resume --restored idemp:o:c --journal ",
		"foreign: the journal was restored at ", " from a backup of " + taken[:19], "repeat none of them (1 row) but with the same bytes and key while the server knows the key",
		"what it did not do: the lines under unresolved (oncehttp journal resume --restored KEY... --journal ",
	} {
		if !strings.Contains(found.Out+found.Err, want) {
			t.Errorf("the audit has no %q:\n%s%s", want, found.Out, found.Err)
		}
	}
	commandtest.Run(t, "journal", "settle", "idemp:o:b", "idemp:o:d", "--happened", "--journal", journal).Want(t, terminal.ExitOK)
	if out := commandtest.Run(t, "journal", "resume", "--restored", "--dry-run", "--journal", journal).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "idemp:o:c  send") {
		t.Errorf("dry run\n%s", out)
	}
	if l := commandtest.Run(t, "journal", "resume", "--restored", "idemp:o:c", "--journal", journal).Want(t, terminal.ExitOK).Only(t); l.Result != results.Done {
		t.Errorf("c: %+v", l)
	}
	batch("a\nb\nc\nd\ne\n", terminal.ExitOK)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		if n := m.Ledger().Effects("idemp:o:" + id); n != 1 {
			t.Errorf("%s: %d effects, want 1", id, n)
		}
	}
}

// What was never sent in the backup may have been sent first when the backup was taken: past
// the window counted from there it is not sent, though the journal never saw it sent.
func TestRestoredWindow(t *testing.T) {
	t.Parallel()
	journal, s := filepath.Join(t.TempDir(), "j.db"), commandtest.Refusing(t)
	begin(t, journal, s.URL, 30*time.Hour, func(*persist.Record) {})
	taken := time.Now().Add(-25 * time.Hour).UTC().Format(time.RFC3339)
	commandtest.Run(t, "journal", "restored", journal, "--taken", taken).Want(t, terminal.ExitOK)
	if l := commandtest.Run(t, "journal", "resume", "--restored", "--journal", journal).Want(t, terminal.ExitUnknown).Only(t); l.Result != results.Held {
		t.Errorf("%+v", l)
	}
	if out := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "held (expired)") {
		t.Errorf("list\n%s", out)
	}
}

// What is held for a reason of its own keeps it, so that a release does not send it; and
// what is final stays final.
func TestRestoredKeeps(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	for _, reason := range []persist.HoldReason{persist.HoldStoredError, persist.HoldMismatch, persist.HoldNoKey, persist.HoldCaller} {
		journal := filepath.Join(t.TempDir(), "j.db")
		begin(t, journal, s.URL, time.Hour, func(rec *persist.Record) {
			rec.State, rec.HoldReason, rec.MaybeSent, rec.FirstSent = persist.StateHeld, reason, true, rec.Created
		})
		commandtest.Run(t, "journal", "restored", journal, "--taken", time.Now().UTC().Format(time.RFC3339Nano)).Want(t, terminal.ExitOK)
		want := reason
		if reason == persist.HoldCaller { // which the same key would release
			want = persist.HoldRestored
		}
		if out := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "held ("+string(want)+")") {
			t.Errorf("%s:\n%s", reason, out)
		}
		if reason != persist.HoldCaller {
			commandtest.Run(t, "journal", "resume", "--restored", "--journal", journal).Want(t, terminal.ExitUnknown)
		}
	}
}

// TestRestoredToken: an operation that had no token of the server yet may have got one since, and have been sent with it. So
// it is held as every other.
func TestRestoredToken(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "t1"} {
		journal := filepath.Join(t.TempDir(), "j.db")
		begin(t, journal, commandtest.Refusing(t).URL, time.Hour, func(rec *persist.Record) { rec.ServerToken, rec.WireKey, rec.Token = true, "", token })
		taken := time.Now().UTC().Format(time.RFC3339Nano)
		for _, held := range []string{"held: 1 operation\n", "held: 0 operations; 1 operation held as restored already\n"} {
			if out := commandtest.Run(t, "journal", "restored", journal, "--taken", taken).Want(t, terminal.ExitOK).Out; out != held {
				t.Errorf("token %q: %q, want %q", token, out, held)
			}
		}
		if out := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "held (restored)") {
			t.Errorf("token %q: list\n%s", token, out)
		}
	}
}

// TestRestoredRekey: a Rekey that was waiting for its lookup waits anew, since the operation may have gone on after the backup.
// For the same reason what was pending before it is not sent again, whatever is found.
func TestRestoredRekey(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		was, replaces, want string
	}{{"rekey", "", "rekey of held"}, {"rekey of held", "", "rekey of held"}, {"rekey", "k0", "rekey"}} {
		journal := filepath.Join(t.TempDir(), "j.db")
		begin(t, journal, commandtest.Refusing(t).URL, time.Hour, func(rec *persist.Record) {
			rec.State, rec.HoldReason, rec.MaybeSent, rec.FirstSent = persist.StateHeld, persist.HoldReason(r.was), true, rec.Created
			rec.NextAttempt = rec.Created.Add(time.Minute)
			rec.Replaces, rec.Enqueued = r.replaces, r.replaces == ""
		})
		commandtest.Run(t, "journal", "restored", journal, "--taken", time.Now().UTC().Format(time.RFC3339Nano)).Want(t, terminal.ExitOK)
		out := commandtest.Run(t, "journal", "show", "k", "--journal", journal, "--json").Want(t, terminal.ExitOK).Out
		if !strings.Contains(out, strconv.Quote(r.want)) || strings.Contains(out, "next_attempt") {
			t.Errorf("%+v: show\n%s", r, out)
		}
	}
}

// begin begins an operation that was created so long ago, and is changed before.
func begin(t *testing.T, journal, target string, age time.Duration, change func(*persist.Record)) {
	t.Helper()
	ses, err := session.CreateSession(place.Place{Path: journal, Name: journal, Arg: journal}, oncehttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, target, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := ses.Client.Prepare(req, "k")
	if err != nil {
		t.Fatal(err)
	}
	rec.Created, rec.SendBefore = rec.Created.Add(-age), time.Time{}
	change(&rec)
	if _, _, err := ses.Journal.Begin(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if err := ses.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRestoredUsage(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	begin(t, journal, commandtest.Refusing(t).URL, time.Hour, func(*persist.Record) {})
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	known := "the latest time that this journal knows is " + ago(time.Hour)[:13]
	for name, tt := range map[string]struct {
		args  []string
		wants []string
	}{
		"no time":                    {[]string{journal}, []string{"--taken is required", known}},
		"no zone":                    {[]string{journal, "--taken", "2026-01-31T02:00:00"}, []string{"want a time with its zone"}},
		"no time yet, and no server": {[]string{"postgres://shop@127.0.0.1:1/shop", "--taken", "yesterday"}, []string{"--taken"}},
		"the future":                 {[]string{journal, "--taken", ago(-time.Hour)}, []string{"in the future", known}},
		"too early":                  {[]string{journal, "--taken", ago(2 * time.Hour)}, []string{"too early", known}},
		"no journal":                 {[]string{"--taken", ago(0)}, []string{"--journal is required"}},
		"no file":                    {[]string{journal + ".not", "--taken", ago(0)}, []string{"no such file"}},
		"account":                    {[]string{journal, "--taken", ago(0), "--account", "a"}, []string{"leave --account out"}},
	} {
		got := commandtest.Run(t, append([]string{"journal", "restored"}, tt.args...)...).Want(t, terminal.ExitUsage)
		for _, want := range tt.wants {
			if !strings.Contains(got.Err, want) || strings.Count(got.Err, "\n") != 1 {
				t.Errorf("%s: %q, want a line with %q", name, got.Err, want)
			}
		}
	}
	if out := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "pending") {
		t.Errorf("what was refused has changed it:\n%s", out)
	}
}
