package atrest_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// scan reads all rows, and closes them.
func scan(t *testing.T, rows *sql.Rows) (all [][]any) {
	t.Helper()
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		row, pointers := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			pointers[i] = &row[i]
		}
		err = rows.Scan(pointers...)
		all = append(all, row)
	}
	if err = errors.Join(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	return all
}

// onPostgres runs the test on a journal on PostgreSQL, in clear and sealed, with a connection that may do everything to its table.
func onPostgres(t *testing.T, test func(t *testing.T, a *api, c *oncehttp.Client, db *sql.DB, table string, sealed bool)) {
	t.Helper()
	for name, sealed := range map[string]bool{"clear": false, "sealed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commandtest.OnServers(t, func(t *testing.T, at string) {
				if !strings.HasPrefix(at, "postgres") {
					return
				}
				a, j := newAPI(t), open(t, at, sealed)
				t.Cleanup(func() { _ = j.Close() })
				db, table := commandtest.Records(t, at)
				test(t, a, client(t, j, a), db, table, sealed)
			})
		})
	}
}

// pay sends a payment, and waits for its record.
func pay(t *testing.T, a *api, c *oncehttp.Client, key oncehttp.Key, body string) error {
	t.Helper()
	resp, err := c.DoKey(payment(t, a, body), key)
	if err == nil {
		_ = resp.Body.Close()
	}
	if ferr := c.Flush(t.Context()); ferr != nil {
		t.Fatal(ferr)
	}
	return err
}

// must runs a statement that changes one row.
func must(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	result, err := db.Exec(statement, args...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if n, _ := result.RowsAffected(); n != 1 {
		t.Fatalf("%s: %d rows", statement, n)
	}
}

// TestRowDeleted: who may DELETE makes the journal forget a key. The next call is sent again, sealed or not, and only the API's own store keeps
// it from a second effect.
func TestRowDeleted(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, a *api, c *oncehttp.Client, db *sql.DB, table string, _ bool) {
		if err := pay(t, a, c, "k", whole); err != nil {
			t.Fatal(err)
		}
		must(t, db, "DELETE FROM "+table)
		if err := pay(t, a, c, "k", whole); err != nil {
			t.Fatal(err)
		}
		if sends, effects := a.seen(); sends != 2 || effects != 1 {
			t.Errorf("%d sends, %d effects; docs/security.md says two and one", sends, effects)
		}
	})
}

// TestRowPutBack: who may UPDATE puts a row back to what it was. The operation is sent again, sealed or not, under its key.
func TestRowPutBack(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, a *api, c *oncehttp.Client, db *sql.DB, table string, _ bool) {
		a.losing(true)
		if err := pay(t, a, c, "k", whole); err == nil {
			t.Fatal("no answer was lost")
		}
		if _, err := db.Exec("CREATE TABLE " + table + "_was AS SELECT * FROM " + table); err != nil {
			t.Fatal(err)
		}
		a.losing(false)
		if err := pay(t, a, c, "k", whole); err != nil {
			t.Fatal(err)
		}
		must(t, db, "DELETE FROM "+table)
		must(t, db, "INSERT INTO "+table+" SELECT * FROM "+table+"_was")
		if err := pay(t, a, c, "k", whole); err != nil {
			t.Fatal(err)
		}
		if sends, effects := a.seen(); sends != 3 || effects != 1 {
			t.Errorf("%d sends, %d effects; docs/security.md says three and one", sends, effects)
		}
	})
}

// TestBodyChanged: who may UPDATE changes the bytes of a request that is pending. They are not those of the
// row's checksum, or of the seal, and are not sent.
func TestBodyChanged(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, a *api, c *oncehttp.Client, db *sql.DB, table string, sealed bool) {
		a.losing(true)
		if err := pay(t, a, c, "k", whole); err == nil {
			t.Fatal("no answer was lost")
		}
		a.losing(false)
		column := map[bool]string{false: "body", true: "intent"}[sealed] // a sealed request is a part of the intent or the body
		var was []byte
		if err := db.QueryRow("SELECT " + column + " FROM " + table).Scan(&was); err != nil {
			t.Fatal(err)
		}
		is := bytes.Replace(was, []byte("body-canary"), []byte("evil-canary"), 1)
		if sealed {
			is[len(is)-1] ^= 1
		}
		if bytes.Equal(was, is) {
			t.Fatal("nothing was changed")
		}
		must(t, db, "UPDATE "+table+" SET "+column+" = $1, next_attempt = 0, lease_until = 0", is)
		failed := 0
		for _, err := range c.Resume(t.Context()) {
			if err != nil {
				failed++
			}
		}
		if sends, _ := a.seen(); sends != 1 || failed == 0 {
			t.Errorf("%d sends, %d errors", sends, failed)
		}
	})
}

// TestAnswerForged: who may UPDATE gives an operation that was never answered the end of another one. In clear, the next call is told that
// answer, and nothing is sent: a payment is lost in silence. Sealed, it is damage, and nothing is handed out.
func TestAnswerForged(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, a *api, c *oncehttp.Client, db *sql.DB, table string, sealed bool) {
		if err := pay(t, a, c, "paid", whole); err != nil {
			t.Fatal(err)
		}
		if err := c.Enqueue(payment(t, a, whole), "never"); err != nil {
			t.Fatal(err)
		}
		must(t, db, fmt.Sprintf(`UPDATE %[1]s AS r SET state = p.state, progress = p.progress, answer = p.answer, finished = p.finished, next_attempt = p.next_attempt
			FROM %[1]s AS p WHERE r.state = 0 AND p.state = 2`, table))
		err := pay(t, a, c, "never", whole)
		if sends, _ := a.seen(); sends != 1 || (err == nil) == sealed || sealed && !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%d sends, error %v", sends, err)
		}
	})
}

// TestReportsAtRest: batch prints each answer's body, and no header and no credential; the page of journal report has keys, and neither
// bodies nor headers nor queries.
func TestReportsAtRest(t *testing.T) {
	t.Parallel()
	a, dir := newAPI(t), t.TempDir()
	orders := commandtest.WriteFile(t, filepath.Join(dir, "orders.csv"), "user,order_id,card\nu1,o1,body-canary\n")
	lines := commandtest.Run(t, "batch", orders, "--url", a.URL+"/path-canary?q=query-canary", "--key", commandtest.OrderKey,
		"-H", "Authorization: Bearer credential-canary", "-H", "X-Note: header-canary").Want(t, 0).Out
	page := filepath.Join(dir, "page.html")
	commandtest.Run(t, "journal", "report", "--journal", orders+".oncehttp.db", "--out", page).Want(t, 0)
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for canary, in := range map[string]struct{ lines, page bool }{
		"answer-canary":        {true, false},
		"body-canary":          {true, false}, // of this API, which puts the request into its answer
		"credential-canary":    {false, false},
		"header-canary":        {false, false},
		"answer-header-canary": {false, false},
		"query-canary":         {false, false},
		"order:u1:o1":          {true, true},
		"/path-canary":         {false, true},
	} {
		if got := strings.Contains(lines, canary); got != in.lines {
			t.Errorf("a result has %q: %t, want %t: %s", canary, got, in.lines, lines)
		}
		if got := bytes.Contains(html, []byte(canary)); got != in.page {
			t.Errorf("the page has %q: %t, want %t", canary, got, in.page)
		}
	}
}

// TestEndForged: who may UPDATE ends a pending operation as abandoned, with the end of another one. Nothing is sent any more, sealed or not: what
// stands in clear is not authenticated.
func TestEndForged(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, a *api, c *oncehttp.Client, db *sql.DB, table string, _ bool) {
		for _, key := range []oncehttp.Key{"given-up", "wanted"} {
			if err := c.Enqueue(payment(t, a, whole), key); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Abandon(t.Context(), "given-up"); err != nil {
			t.Fatal(err)
		}
		must(t, db, fmt.Sprintf(`UPDATE %[1]s AS r SET state = p.state, progress = p.progress, finished = p.finished, next_attempt = p.next_attempt
			FROM %[1]s AS p WHERE r.state = 0 AND p.state = 5`, table))
		for _, err := range c.Resume(t.Context()) {
			t.Error(err)
		}
		if err := pay(t, a, c, "wanted", whole); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v, want ErrOutcomeUnknown of an abandoned operation", err)
		}
		if sends, _ := a.seen(); sends != 0 {
			t.Errorf("%d sends", sends)
		}
	})
}

// TestFreePages: a prune of a file leaves what it removed in pages that are free, until they are used again. A compacted file does not have it.
func TestFreePages(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "j.db")
	a, j := newAPI(t), open(t, at, false)
	c := client(t, j, a)
	if err := pay(t, a, c, "k", whole); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Prune(t.Context(), oncehttp.Keeping{KeepAnswer: -1}); err != nil || n != 1 {
		t.Fatalf("%d pruned, %v", n, err)
	}
	if err := errors.Join(c.Close(), j.Close()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(raw(t, at), []byte("body-canary")) {
		t.Error("a prune overwrites what it removes: say so in docs/security.md")
	}
	commandtest.Run(t, "journal", "compact", "--journal", at).Want(t, 0)
	for canary, stays := range map[string]bool{"body-canary": false, "answer-canary": false, "kept-canary": true} {
		if got := bytes.Contains(raw(t, at), []byte(canary)); got != stays {
			t.Errorf("the compacted file has %q: %t, want %t", canary, got, stays)
		}
	}
}

// unsealedFact calls do while the journal does not say that it is sealed.
func unsealedFact(t *testing.T, db *sql.DB, schema string, do func()) {
	t.Helper()
	must(t, db, "UPDATE "+schema+".fact SET name = 'other' WHERE name = 'seal'")
	do()
	must(t, db, "UPDATE "+schema+".fact SET name = 'seal' WHERE name = 'other'")
}

// TestClearRowAmongSealed: a transaction that forgot to seal is refused. A row in clear of somebody who may INSERT is not sent by a client with
// the keys. The same row in a journal in clear is.
func TestClearRowAmongSealed(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, a *api, c *oncehttp.Client, db *sql.DB, table string, sealed bool) {
		if err := pay(t, a, c, "first", whole); err != nil {
			t.Fatal(err)
		}
		rec, err := client(t, memory.New(), a).Prepare(payment(t, a, whole), "k")
		if err != nil {
			t.Fatal(err)
		}
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			t.Fatal(err)
		}
		schema, _, _ := strings.Cut(table, ".")
		_, created, err := postgres.Options{Schema: schema}.BeginSQL(t.Context(), tx, rec)
		if sealed == (err == nil) || sealed && !errors.Is(err, persist.ErrSealed) || created == sealed {
			t.Errorf("sealed %t: begun %t, %v", sealed, created, err)
		}
		if err := tx.Commit(); err != nil { // the transaction goes on
			t.Fatal(err)
		}
		if sealed { // as somebody who may INSERT does it
			unsealedFact(t, db, schema, func() {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = postgres.Options{Schema: schema}.BeginSQL(t.Context(), tx, rec)
				if err = errors.Join(err, tx.Commit()); err != nil {
					t.Fatal(err)
				}
			})
		}
		for range c.Resume(t.Context()) { // with an error for each that it does not send
		}
		if sends, _ := a.seen(); sends != map[bool]int{false: 2, true: 1}[sealed] {
			t.Errorf("%d sends", sends)
		}
	})
}
