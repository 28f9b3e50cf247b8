package place_test

import (
	"database/sql"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// views are the commands that look at a journal, with what they need.
func views(t *testing.T) map[string][]string {
	export := commandtest.WriteFile(t, "export.csv", "key\nidemp:o:a\n")
	return map[string][]string{
		"list": {"journal", "list"}, "list of a key": {"journal", "list", "idemp:o:*", "--format", "json"}, "show": {"journal", "show", "idemp:o:a"},
		"stuck": {"journal", "stuck"}, "stats": {"journal", "stats"}, "verify": {"journal", "verify"}, "export": {"journal", "export"},
		"report": {"journal", "report", "--out", commandtest.WriteFile(t, "report.html", "")},
		"resume": {"journal", "resume", "--dry-run"}, "audit": {"audit", "--against", export, "--match", "key"},
	}
}

// TestReaders: a role that may only read sees with every view what others see, also what a program has begun in a transaction
// of its own and no client has met yet; and it changes nothing. What writes is refused with a line.
func TestReaders(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		someOperations(t, journal)
		db, table := commandtest.Records(t, journal)
		for name, as := range commandtest.Readers(t, journal) {
			key := commandtest.OwnName()
			beginInTransaction(t, journal, key)
			const unnumbered = " WHERE seq IS NULL"
			seen := map[string]commandtest.Ran{}
			for view, args := range views(t) {
				seen[view] = commandtest.Run(t, append(args, "--journal", as)...)
			}
			if !strings.Contains(seen["list"].Out, key) {
				t.Errorf("%s: list leaves out what was begun in a transaction:\n%s", name, seen["list"].Out)
			}
			if n := countRows(t, db, table+unnumbered); n == 0 {
				t.Errorf("%s: the views have changed records", name)
			}
			for view, args := range views(t) {
				want := commandtest.Run(t, append(args, "--journal", journal)...)
				if got := seen[view]; !commandtest.SameView(view, got, want) {
					t.Errorf("%s: %s ends with %d: %s\n%s\nand its owner's with %d: %s\n%s", name, view, got.Status, got.Err, got.Out, want.Status, want.Err, want.Out)
				}
			}
			got := commandtest.Run(t, "journal", "abandon", "idemp:o:b", "--yes", "--journal", as)
			if got.Status == terminal.ExitOK || strings.Count(got.Err, "\n") != 1 {
				t.Errorf("%s: abandon ends with %d: %q, want a line", name, got.Status, got.Err)
			}
		}
	})
}

// TestReadersRedis is TestReaders for a user of Redis with the rights that docs/journals.md names.
func TestReadersRedis(t *testing.T) {
	t.Parallel()
	server := commandtest.OwnRedis(t, commandtest.Durable()...)
	someOperations(t, server.Journal())
	client := server.Client(t)
	user := []any{"ACL", "SETUSER", "shop", "on", ">secret", "%R~{oncehttp*", "+@read", "+@connection", "+info"}
	if err := client.Do(t.Context(), user...).Err(); err != nil {
		t.Fatal(err)
	}
	as := "@" + commandtest.WriteFile(t, "journal.url", strings.Replace(server.Journal(), "redis://", "redis://shop:secret@", 1)+"\n")
	for view, args := range views(t) {
		want, got := commandtest.Run(t, append(args, "--journal", server.Journal())...), commandtest.Run(t, append(args, "--journal", as)...)
		if !commandtest.SameView(view, got, want) {
			t.Errorf("%s ends with %d: %s\n%s\nand its owner's with %d: %s\n%s", view, got.Status, got.Err, got.Out, want.Status, want.Err, want.Out)
		}
	}
	if got := commandtest.Run(t, "journal", "abandon", "idemp:o:b", "--yes", "--journal", as); got.Status == terminal.ExitOK || strings.Count(got.Err, "\n") != 1 {
		t.Errorf("abandon ends with %d: %q, want a line", got.Status, got.Err)
	}
}

func countRows(t *testing.T, db *sql.DB, from string) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT COUNT(*) FROM " + from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// someOperations leaves a journal with an operation that is done, one in doubt and one that is held.
func someOperations(t *testing.T, journal string) {
	t.Helper()
	m := commandtest.StartMock(t, mockserver.Config{})
	m.Inject(mockserver.Fault{}, mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropAfter})
	file := commandtest.WriteFile(t, "in.csv", "id\na\nb\nc\n")
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}", "--workers", "1", "--journal", journal, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
}

// beginInTransaction enqueues an operation in a transaction of the program's own, as an outbox does.
func beginInTransaction(t *testing.T, journal, key string) {
	t.Helper()
	at, err := place.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	ses, err := session.OpenSession(at, oncehttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:1/later", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := ses.Client.Prepare(req, oncehttp.Key(key))
	if err != nil {
		t.Fatal(err)
	}
	if err := ses.Close(); err != nil {
		t.Fatal(err)
	}
	db, _ := commandtest.Records(t, journal)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	created := false
	if at.URL.Scheme == "mysql" {
		_, created, err = mysql.Begin(t.Context(), tx, rec)
	} else {
		_, created, err = postgres.Options{Schema: at.URL.Query().Get("schema")}.BeginSQL(t.Context(), tx, rec)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil || !created {
		t.Fatalf("created %t, %v", created, err)
	}
}
