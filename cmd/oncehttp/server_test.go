package main

import (
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist/memory"
	sqlmysql "github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// server is a database server that tests use, and what it takes to make a journal of the
// test's own there.
type server struct {
	variable, standard string
	database           func(t *testing.T, at *url.URL) string // the URL of an empty journal, removed with the test
}

func servers() map[string]server {
	return map[string]server{
		"postgres": {"ONCEHTTP_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres", postgresSchema},
		"mysql":    {"ONCEHTTP_TEST_MYSQL", "mysql://root@127.0.0.1:3306/test", mysqlDatabase},
	}
}

// url is where the server is. Where nothing answers at its address by default, the test is
// skipped and says so, or fails if ONCEHTTP_REQUIRE_SERVICES is 1.
func (s server) url(t *testing.T) *url.URL {
	t.Helper()
	text := os.Getenv(s.variable)
	if text == "" {
		text = s.standard
	}
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", u.Host, 2*time.Second)
	if err == nil {
		_ = conn.Close()
		return u
	}
	if os.Getenv("ONCEHTTP_REQUIRE_SERVICES") == "1" || os.Getenv(s.variable) != "" {
		t.Fatalf("nothing answers at %s: %v", u.Host, err)
	}
	t.Skipf("nothing was tested: no server answers at %s; start one, or set %s", u.Host, s.variable)
	return nil
}

// onServers runs the test with a migrated journal of its own on each server.
func onServers(t *testing.T, test func(t *testing.T, journal string)) {
	for name, s := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := s.database(t, s.url(t))
			run(t, "journal", "migrate", journal).want(t, exitOK)
			test(t, journal)
		})
	}
}

func ownName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return "oncehttp_test_" + hex.EncodeToString(b)
}

// sqlDB is a pool that is closed with the test.
func sqlDB(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func postgresSchema(t *testing.T, at *url.URL) string {
	t.Helper()
	db, name, own := sqlDB(t, "pgx", at.String()), ownName(), *at
	t.Cleanup(func() { mustExec(t, db, "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	own.RawQuery = url.Values{"schema": {name}}.Encode()
	return own.String()
}

func mysqlDatabase(t *testing.T, at *url.URL) string {
	t.Helper()
	db, name, own := mysqlDB(t, at, ""), ownName(), *at
	mustExec(t, db, "CREATE DATABASE "+name)
	t.Cleanup(func() { mustExec(t, db, "DROP DATABASE "+name) })
	own.Path = "/" + name
	return own.String()
}

func mysqlDB(t *testing.T, at *url.URL, database string) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.DBName = "tcp", at.Host, at.User.Username(), database
	c.Passwd, _ = at.User.Password()
	return sqlDB(t, "mysql", c.FormatDSN())
}

func mustExec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Error(err)
	}
}

// records is the table of a journal, and a pool that finds it.
func records(t *testing.T, journal string) (*sql.DB, string) {
	t.Helper()
	u, err := url.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	if u.Scheme == "mysql" {
		return mysqlDB(t, u, strings.TrimPrefix(u.Path, "/")), "oncehttp_record"
	}
	schema := u.Query().Get("schema")
	u.RawQuery = ""
	return sqlDB(t, "pgx", u.String()), schema + ".record"
}

// A batch on a server, broken and made again, has each effect once; and every command that
// looks at a journal, or ends what is in doubt, works there.
func TestServerJournal(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, journal string) {
		m := startMock(t, mockserver.Config{})
		m.Inject(mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropAfter})
		file := writeFile(t, "in.csv", "id\na\nb\nc\nd\n")
		args := fast("batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}", "--workers", "1", "--journal", journal)
		run(t, append(args, "--max-attempts", "1")...).want(t, exitUnknown)
		if _, err := os.Stat(file + ".oncehttp.db"); err == nil {
			t.Error("there is a journal beside the file, too")
		}
		look := func(want int, args ...string) ran {
			t.Helper()
			return run(t, append(args, "--journal", journal)...).want(t, want)
		}
		if out := look(exitOK, "journal", "list", "--state", "pending").out; strings.Count(out, "\n") != 4 {
			t.Errorf("list\n%s", out)
		}
		look(exitOK, "journal", "settle", "idemp:o:a", "--happened")
		look(exitOK, "journal", "abandon", "idemp:o:b")
		if out := look(exitOK, "journal", "resume").out; strings.Count(out, "\n") != 1 || !strings.Contains(out, "idemp:o:c") {
			t.Errorf("resume\n%s", out)
		}
		sends := m.Ledger().Effects("idemp:o:c")
		if got := run(t, args...).want(t, exitUnknown).lines(t); len(got) != 4 || got[2].Source != "journal" || got[3].Source != "journal" {
			t.Errorf("the batch again: %+v", got)
		}
		if now := m.Ledger().Effects("idemp:o:c"); sends != 1 || now != 1 {
			t.Errorf("%d effects, then %d, want 1", sends, now)
		}
		look(exitOK, "send", "POST", m.URL()+"/payments", "-d", `{"id":"e"}`, "--key", "e")
		if out := look(exitOK, "journal", "show", "e", "--json").out; !strings.Contains(out, `"confirmed"`) {
			t.Errorf("show\n%s", out)
		}
		if out := look(exitOK, "journal", "export").out; strings.Count(out, "\n") != 5 {
			t.Errorf("export\n%s", out)
		}
		for _, args := range [][]string{{"stats"}, {"stuck"}, {"report", "--out", writeFile(t, "report.html", "")}, {"verify"}} {
			look(exitOK, append([]string{"journal"}, args...)...)
		}
		export := writeFile(t, "export.csv", "key\nidemp:o:a\nidemp:o:b\nidemp:o:c\nidemp:o:d\ne\n")
		look(exitFindings, "audit", "--against", export, "--match", "key") // b was abandoned
		if out := look(exitOK, "journal", "prune", "--keep-answer", "-1s", "--yes").out; out != "pruned: 5 records\n" {
			t.Errorf("prune: %s", out)
		}
		if err := look(exitUsage, "journal", "compact").err; !strings.Contains(err, "compact is for journals in a file") || strings.Count(err, "\n") != 1 {
			t.Errorf("compact: %s", err)
		}
	})
}

// Resume with a key sends that operation and no other, though the journal hands out leases.
func TestServerResumeKey(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, journal string) {
		m := startMock(t, mockserver.Config{})
		m.Inject(mockserver.Fault{Kind: mockserver.DropBefore}, mockserver.Fault{Kind: mockserver.DropBefore}, mockserver.Fault{Kind: mockserver.DropBefore})
		file := writeFile(t, "in.csv", "id\na\nb\nc\n")
		run(t, fast("batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}", "--workers", "1", "--journal", journal, "--max-attempts", "1")...).want(t, exitUnknown)
		got := run(t, "journal", "resume", "idemp:o:c", "idemp:o:b", "--journal", journal).want(t, exitOK)
		if l := got.lines(t); len(l) != 2 {
			t.Errorf("resumed\n%s", got.out)
		}
		for key, want := range map[string]int{"idemp:o:a": 0, "idemp:o:b": 1, "idemp:o:c": 1} {
			if n := m.Ledger().Effects(key); n != want {
				t.Errorf("%s: %d effects, want %d", key, n, want)
			}
		}
	})
}

// beginOpen begins the operation of a POST in a transaction that stays open.
func beginOpen(t *testing.T, journal, target, key string) *sql.Tx {
	t.Helper()
	db, table := records(t, journal)
	client, err := oncehttp.New(oncehttp.Config{Journal: memory.New()}) // Prepare writes nothing
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, target, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := client.Prepare(req, oncehttp.Key(key))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	begin := sqlmysql.Options{}.Begin
	if schema, _, found := strings.Cut(table, "."); found {
		begin = postgres.Options{Schema: schema}.BeginSQL
	}
	if _, created, err := begin(t.Context(), tx, rec); err != nil || !created {
		t.Fatalf("created %t, error %v", created, err)
	}
	return tx
}

// Where the server did not say what became of one row's begin, that row is unknown, and the
// batch goes on.
func TestServerUncertainRow(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, journal string) {
		file := writeFile(t, "in.csv", "id\na\nb\nc\n")
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
		tx := beginOpen(t, journal, s.url, "idemp:o:b")
		args := fast("batch", file, "--url", s.url, "--key", "o:{id}", "--workers", "1", "--journal", journal)
		first := run(t, args...).want(t, exitUnknown)
		if got := first.lines(t); len(got) != 3 || got[0].Result != resultDone || got[1].Result != resultUnknown || got[2].Result != resultDone {
			t.Errorf("%s%s", first.out, first.err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if run(t, args...).want(t, exitOK); s.sends.Load() != 3 {
			t.Errorf("%d sends, want 3", s.sends.Load())
		}
	})
}
