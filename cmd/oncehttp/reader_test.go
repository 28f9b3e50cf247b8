package main

import (
	"database/sql"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// readers are roles that may read a journal on a server and nothing else, as docs/journals.md grants it: for the URL of the
// journal the URL of the role.
func readers(t *testing.T, journal string) map[string]string {
	t.Helper()
	u, err := url.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	roles, role, as := map[string]string{}, ownName(), *u
	as.User = url.User(role)
	switch db, _ := records(t, journal); u.Scheme {
	case "mysql":
		at := "'" + role + "'@'127.0.0.1'"
		mustExec(t, db, "CREATE USER "+at)
		t.Cleanup(func() { mustExec(t, db, "DROP USER "+at) })
		mustExec(t, db, "GRANT SELECT ON "+strings.TrimPrefix(u.Path, "/")+".* TO "+at)
	default:
		schema := u.Query().Get("schema")
		for _, s := range []string{
			"CREATE ROLE shop LOGIN", "REVOKE EXECUTE ON FUNCTION oncehttp.write_records FROM PUBLIC",
			"GRANT USAGE ON SCHEMA oncehttp TO shop", "GRANT SELECT ON oncehttp.version, oncehttp.record TO shop",
		} {
			mustExec(t, db, strings.NewReplacer("oncehttp", schema, "shop", role).Replace(s))
		}
		t.Cleanup(func() { mustExec(t, db, "DROP OWNED BY "+role); mustExec(t, db, "DROP ROLE "+role) })
		never := as
		q := never.Query()
		q.Set("default_transaction_read_only", "on")
		never.RawQuery = q.Encode()
		roles["a session that may not write"] = never.String()
	}
	roles["a role that may not write"] = as.String()
	return roles
}

// views are the commands that look at a journal, with what they need.
func views(t *testing.T) map[string][]string {
	export := writeFile(t, "export.csv", "key\nidemp:o:a\n")
	return map[string][]string{
		"list": {"journal", "list"}, "list of a key": {"journal", "list", "idemp:o:*", "--format", "json"}, "show": {"journal", "show", "idemp:o:a"},
		"stuck": {"journal", "stuck"}, "stats": {"journal", "stats"}, "verify": {"journal", "verify"}, "export": {"journal", "export"},
		"report": {"journal", "report", "--out", writeFile(t, "report.html", "")},
		"resume": {"journal", "resume", "--dry-run"}, "audit": {"audit", "--against", export, "--match", "key"},
	}
}

// TestReaders: a role that may only read sees with every view what others see, also what a program has begun in a transaction
// of its own and no client has met yet; and it changes nothing. What writes is refused with a line.
func TestReaders(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, journal string) {
		someOperations(t, journal)
		db, table := records(t, journal)
		for name, as := range readers(t, journal) {
			key := ownName()
			beginInTransaction(t, journal, key)
			const unnumbered = " WHERE seq IS NULL"
			seen := map[string]ran{}
			for view, args := range views(t) {
				seen[view] = run(t, append(args, "--journal", as)...)
			}
			if !strings.Contains(seen["list"].out, key) {
				t.Errorf("%s: list leaves out what was begun in a transaction:\n%s", name, seen["list"].out)
			}
			if n := countRows(t, db, table+unnumbered); n == 0 {
				t.Errorf("%s: the views have changed records", name)
			}
			for view, args := range views(t) {
				want := run(t, append(args, "--journal", journal)...)
				if got := seen[view]; !sameView(view, got, want) {
					t.Errorf("%s: %s ends with %d: %s\n%s\nand its owner's with %d: %s\n%s", name, view, got.status, got.err, got.out, want.status, want.err, want.out)
				}
			}
			got := run(t, "journal", "abandon", "idemp:o:b", "--journal", as)
			if got.status == exitOK || strings.Count(got.err, "\n") != 1 {
				t.Errorf("%s: abandon ends with %d: %q, want a line", name, got.status, got.err)
			}
		}
	})
}

// TestReadersRedis is TestReaders for a user of Redis with the rights that docs/journals.md names.
func TestReadersRedis(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, durable()...)
	someOperations(t, server.journal())
	client := server.client(t)
	user := []any{"ACL", "SETUSER", "shop", "on", ">secret", "%R~{oncehttp*", "+@read", "+@connection", "+info"}
	if err := client.Do(t.Context(), user...).Err(); err != nil {
		t.Fatal(err)
	}
	as := "@" + writeFile(t, "journal.url", strings.Replace(server.journal(), "redis://", "redis://shop:secret@", 1)+"\n")
	for view, args := range views(t) {
		want, got := run(t, append(args, "--journal", server.journal())...), run(t, append(args, "--journal", as)...)
		if !sameView(view, got, want) {
			t.Errorf("%s ends with %d: %s\n%s\nand its owner's with %d: %s\n%s", view, got.status, got.err, got.out, want.status, want.err, want.out)
		}
	}
	if got := run(t, "journal", "abandon", "idemp:o:b", "--journal", as); got.status == exitOK || strings.Count(got.err, "\n") != 1 {
		t.Errorf("abandon ends with %d: %q, want a line", got.status, got.err)
	}
}

// sameView reports whether a view shows the same to both, but for ages and names of files.
func sameView(view string, a, b ran) bool {
	exact := slices.Contains([]string{"list", "list of a key", "show", "verify", "export"}, view)
	return a.status == b.status && (a.out == "") == (b.out == "") && strings.Count(a.out, "\n") == strings.Count(b.out, "\n") && (!exact || a.out == b.out)
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
	m := startMock(t, mockserver.Config{})
	m.Inject(mockserver.Fault{}, mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropAfter})
	file := writeFile(t, "in.csv", "id\na\nb\nc\n")
	run(t, fast("batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}", "--workers", "1", "--journal", journal, "--max-attempts", "1")...).want(t, exitUnknown)
}

// beginInTransaction enqueues an operation in a transaction of the program's own, as an outbox does.
func beginInTransaction(t *testing.T, journal, key string) {
	t.Helper()
	at, err := parsePlace(journal)
	if err != nil {
		t.Fatal(err)
	}
	ses, err := openSession(at, oncehttp.Config{}, false)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:1/later", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := ses.client.Prepare(req, oncehttp.Key(key))
	if err != nil {
		t.Fatal(err)
	}
	if err := ses.close(); err != nil {
		t.Fatal(err)
	}
	db, _ := records(t, journal)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	created := false
	if at.url.Scheme == "mysql" {
		_, created, err = mysql.Begin(t.Context(), tx, rec)
	} else {
		_, created, err = postgres.Options{Schema: at.url.Query().Get(schemaParameter)}.BeginSQL(t.Context(), tx, rec)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil || !created {
		t.Fatalf("created %t, %v", created, err)
	}
}
