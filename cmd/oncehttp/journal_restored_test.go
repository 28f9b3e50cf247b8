package main

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
		mustExec(t, sqlDB(t, "pgx", u.String()), "DROP SCHEMA "+schema+" CASCADE")
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
		db := mysqlDB(t, u, "")
		mustExec(t, db, "DROP DATABASE "+name)
		mustExec(t, db, "CREATE DATABASE "+name)
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
			s := servers()[name]
			journal := s.database(t, s.url(t))
			run(t, "journal", "migrate", journal).want(t, exitOK)
			testRestored(t, journal, keep)
		})
	}
}

func testRestored(t *testing.T, journal string, keep backup) {
	m := startMock(t, mockserver.Config{})
	batch := func(rows string, want int, args ...string) ran {
		t.Helper()
		file := writeFile(t, "in.csv", "id\n"+rows)
		return run(t, fast(append([]string{"batch", file, "--url", m.URL() + "/payments", "--key", "o:{id}", "--journal", journal, "--workers", "1"}, args...)...)...).want(t, want)
	}
	// In the backup a is done, b took effect and its answer was lost, c never arrived, and d
	// was enqueued and not sent.
	m.Inject(mockserver.Fault{}, mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropBefore})
	batch("a\nb\nc\n", exitUnknown, "--max-attempts", "1")
	enqueueOne(t, journal, m.URL()+"/payments", "idemp:o:d", `{"id":"d"}`)
	taken := time.Now().UTC().Format(time.RFC3339Nano)
	restore := keep(t, journal)
	// Afterwards d is sent, and e is begun; then the journal is lost.
	run(t, "journal", "resume", "idemp:o:d", "--journal", journal).want(t, exitOK)
	batch("e\n", exitOK)
	since := time.Now().UTC().Format(time.RFC3339Nano)
	restore()

	first := run(t, "journal", "restored", "--journal", journal, "--taken", taken).want(t, exitOK)
	if first.out != "held: 3 operations\n" || !strings.Contains(first.err, "oncehttp audit --journal ") || !strings.Contains(first.err, "--since "+taken[:19]) {
		t.Errorf("stdout %q, stderr\n%s", first.out, first.err)
	}
	if again := run(t, "journal", "restored", "--journal", journal, "--taken", taken).want(t, exitOK); again.out != "held: 0 operations\n" {
		t.Errorf("again: %q", again.out)
	}
	if out := run(t, "journal", "list", "--journal", journal).want(t, exitOK).out; strings.Count(out, "held (restored)") != 3 {
		t.Errorf("list\n%s", out)
	}
	before := m.Ledger().Snapshot().Sends
	run(t, "journal", "resume", "--journal", journal).want(t, exitUnknown)
	if got := batch("a\nb\nc\nd\n", exitUnknown).lines(t); got[0].Result != resultDone || got[1].Result != resultHeld || got[2].Result != resultHeld || got[3].Result != resultHeld {
		t.Errorf("the batch again: %+v", got)
	}
	if now := m.Ledger().Snapshot().Sends; now != before {
		t.Errorf("%d sends of what is held", now-before)
	}

	export := writeFile(t, "export.csv", "key,at\nidemp:o:a,2020-01-01T00:00:00Z\nidemp:o:b,"+since+"\nidemp:o:d,"+since+"\nidemp:o:e,"+since+"\n")
	found := run(t, "audit", "--journal", journal, "--against", export, "--match", "key", "--time", "at", "--since", taken, "--edge", "0s", "--all-rows").want(t, exitFindings).out
	for _, want := range []string{"settle        idemp:o:b", "settle        idemp:o:d", "foreign         idemp:o:e"} {
		if !strings.Contains(found, want) {
			t.Errorf("the audit has no %q:\n%s", want, found)
		}
	}
	run(t, "journal", "settle", "idemp:o:b", "idemp:o:d", "--happened", "--journal", journal).want(t, exitOK)
	if out := run(t, "journal", "resume", "--restored", "--dry-run", "--journal", journal).want(t, exitOK).out; !strings.Contains(out, "idemp:o:c  send") {
		t.Errorf("dry run\n%s", out)
	}
	if l := run(t, "journal", "resume", "--restored", "idemp:o:c", "--journal", journal).want(t, exitOK).only(t); l.Result != resultDone {
		t.Errorf("c: %+v", l)
	}
	batch("a\nb\nc\nd\ne\n", exitOK)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		if n := m.Ledger().Effects("idemp:o:" + id); n != 1 {
			t.Errorf("%s: %d effects, want 1", id, n)
		}
	}
}

// enqueueOne enqueues one operation, as a program would.
func enqueueOne(t *testing.T, journal, target, key, body string) {
	t.Helper()
	at, err := parsePlace(journal)
	if err != nil {
		t.Fatal(err)
	}
	ses, err := openSession(at, oncehttp.Config{}, true)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if err := ses.client.Enqueue(req, oncehttp.Key(key)); err != nil {
		t.Fatal(err)
	}
	if err := ses.close(); err != nil {
		t.Fatal(err)
	}
}

// What was never sent in the backup may have been sent first when the backup was taken: past
// the window counted from there it is not sent, though the journal never saw it sent.
func TestRestoredWindow(t *testing.T) {
	t.Parallel()
	journal, s := filepath.Join(t.TempDir(), "j.db"), refusing(t)
	begin(t, journal, s.url, 30*time.Hour, func(*persist.Record) {})
	taken := time.Now().Add(-25 * time.Hour).UTC().Format(time.RFC3339)
	run(t, "journal", "restored", journal, "--taken", taken).want(t, exitOK)
	if l := run(t, "journal", "resume", "--restored", "--journal", journal).want(t, exitUnknown).only(t); l.Result != resultHeld {
		t.Errorf("%+v", l)
	}
	if out := run(t, "journal", "list", "--journal", journal).want(t, exitOK).out; !strings.Contains(out, "held (expired)") {
		t.Errorf("list\n%s", out)
	}
}

// What is held for a reason of its own keeps it, so that a release does not send it; and
// what is final stays final.
func TestRestoredKeeps(t *testing.T) {
	t.Parallel()
	s := refusing(t)
	for _, reason := range []persist.HoldReason{persist.HoldStoredError, persist.HoldMismatch, persist.HoldNoKey, persist.HoldCaller} {
		journal := filepath.Join(t.TempDir(), "j.db")
		begin(t, journal, s.url, time.Hour, func(rec *persist.Record) {
			rec.State, rec.HoldReason, rec.MaybeSent, rec.FirstSent = persist.StateHeld, reason, true, rec.Created
		})
		run(t, "journal", "restored", journal, "--taken", time.Now().UTC().Format(time.RFC3339Nano)).want(t, exitOK)
		want := reason
		if reason == persist.HoldCaller { // which the same key would release
			want = persist.HoldRestored
		}
		if out := run(t, "journal", "list", "--journal", journal).want(t, exitOK).out; !strings.Contains(out, "held ("+string(want)+")") {
			t.Errorf("%s:\n%s", reason, out)
		}
		if reason != persist.HoldCaller {
			run(t, "journal", "resume", "--restored", "--journal", journal).want(t, exitUnknown)
		}
	}
}

// TestRestoredToken: an operation that had no token of the server yet may have got one since, and have been sent with it. So
// it is held as every other.
func TestRestoredToken(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "t1"} {
		journal := filepath.Join(t.TempDir(), "j.db")
		begin(t, journal, refusing(t).url, time.Hour, func(rec *persist.Record) { rec.ServerToken, rec.WireKey, rec.Token = true, "", token })
		taken := time.Now().UTC().Format(time.RFC3339Nano)
		for _, held := range []string{"held: 1 operation\n", "held: 0 operations\n"} {
			if out := run(t, "journal", "restored", journal, "--taken", taken).want(t, exitOK).out; out != held {
				t.Errorf("token %q: %q, want %q", token, out, held)
			}
		}
		if out := run(t, "journal", "list", "--journal", journal).want(t, exitOK).out; !strings.Contains(out, "held (restored)") {
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
		begin(t, journal, refusing(t).url, time.Hour, func(rec *persist.Record) {
			rec.State, rec.HoldReason, rec.MaybeSent, rec.FirstSent = persist.StateHeld, persist.HoldReason(r.was), true, rec.Created
			rec.NextAttempt = rec.Created.Add(time.Minute)
			rec.Replaces, rec.Enqueued = r.replaces, r.replaces == ""
		})
		run(t, "journal", "restored", journal, "--taken", time.Now().UTC().Format(time.RFC3339Nano)).want(t, exitOK)
		out := run(t, "journal", "show", "k", "--journal", journal, "--json").want(t, exitOK).out
		if !strings.Contains(out, strconv.Quote(r.want)) || strings.Contains(out, "next_attempt") {
			t.Errorf("%+v: show\n%s", r, out)
		}
	}
}

// begin begins an operation that was created so long ago, and is changed before.
func begin(t *testing.T, journal, target string, age time.Duration, change func(*persist.Record)) {
	t.Helper()
	ses, err := openSession(place{path: journal, name: journal, arg: journal}, oncehttp.Config{}, true)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, target, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := ses.client.Prepare(req, "k")
	if err != nil {
		t.Fatal(err)
	}
	rec.Created, rec.SendBefore = rec.Created.Add(-age), time.Time{}
	change(&rec)
	if _, _, err := ses.journal.Begin(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if err := ses.close(); err != nil {
		t.Fatal(err)
	}
}

func TestRestoredUsage(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	begin(t, journal, refusing(t).url, time.Hour, func(*persist.Record) {})
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
		got := run(t, append([]string{"journal", "restored"}, tt.args...)...).want(t, exitUsage)
		for _, want := range tt.wants {
			if !strings.Contains(got.err, want) || strings.Count(got.err, "\n") != 1 {
				t.Errorf("%s: %q, want a line with %q", name, got.err, want)
			}
		}
	}
	if out := run(t, "journal", "list", "--journal", journal).want(t, exitOK).out; !strings.Contains(out, "pending") {
		t.Errorf("what was refused has changed it:\n%s", out)
	}
}
