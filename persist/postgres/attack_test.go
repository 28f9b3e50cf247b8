package postgres_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// inserted are the columns of a row that a role inserts which may do nothing else.
const inserted = "id, revision, token, account, op_key, fingerprint, generated, created, sweep_at, origin, needs, state, unreported, swept, " +
	"next_attempt, finished, lease_owner, lease_until, send_until, owed_from, intent, progress, body, answer, hold_reason"

// hits is a server that notes the paths and credentials that reach it.
type hits struct {
	*httptest.Server
	mu  sync.Mutex
	all []string
}

func newHits(t *testing.T) *hits {
	t.Helper()
	h := &hits{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, req.URL.Path+" "+req.Header.Get("Authorization"))
		rw.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hits) seen() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.all, ", ")
}

// TestInsertedRows: somebody who may only INSERT into the table of operations makes the worker send nothing to another host, and gets its
// credentials nowhere; at a host of the worker's Origins the operation is sent, with the credentials.
func TestInsertedRows(t *testing.T) {
	t.Parallel()
	db := admin(t)
	victim, scratch := migrated(t, db), migrated(t, db)
	ours, foreign := newHits(t), newHits(t)
	attacker := asInserter(t, db, victim.Schema)

	theirs, err := oncehttp.New(oncehttp.Config{Journal: open(t, server(t), scratch), Origins: sqltest.Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	for key, target := range map[string]string{"ours": ours.URL + "/ours", "foreign": foreign.URL + "/foreign", "disguised": foreign.URL + "/disguised"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := theirs.Enqueue(req, oncehttp.Key(key)); err != nil {
			t.Fatal(err)
		}
	}
	copyRows(t, db, scratch.Schema, attacker, victim.Schema, ours.URL)

	j := open(t, server(t), victim)
	worker, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: []string{ours.URL}, Authorize: func(req *http.Request) error {
		req.Header.Set("Authorization", "Bearer live")
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Close() })
	for range 3 {
		for range worker.Resume(t.Context()) { // errors of those for other hosts
		}
	}
	if ours.seen() != "/ours Bearer live" || foreign.seen() != "" {
		t.Errorf("at the worker's host: %q; elsewhere: %q", ours.seen(), foreign.seen())
	}
	for _, key := range []string{"foreign", "disguised"} {
		if rec, err := j.Get(t.Context(), persist.ID{Key: key}); err == nil && (rec.State.Final() || rec.Sends != 0) {
			t.Errorf("%q is %v after %d sends", key, rec.State, rec.Sends)
		}
	}
}

// asInserter connects as a role that may only insert into the table of operations.
func asInserter(t *testing.T, db *sql.DB, schema string) *sql.DB {
	t.Helper()
	role := sqltest.Name()
	run := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	run("CREATE ROLE " + role + " LOGIN")
	t.Cleanup(func() { run("DROP OWNED BY "+role, "DROP ROLE "+role) })
	run("GRANT USAGE ON SCHEMA "+schema+" TO "+role, "GRANT INSERT ON "+schema+".record TO "+role)
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	attacker, err := sql.Open("pgx", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = attacker.Close() })
	for _, s := range []string{"SELECT 1 FROM " + schema + ".record", "UPDATE " + schema + ".record SET seq = 1", "SELECT 1 FROM " + schema + ".fact"} {
		if _, err := attacker.Exec(s); err == nil {
			t.Fatalf("the role may: %s", s)
		}
	}
	return attacker
}

// copyRows inserts the rows of one journal into another one. That of the key "disguised" says in its column that it is for another host.
func copyRows(t *testing.T, from *sql.DB, source string, to *sql.DB, target, host string) {
	t.Helper()
	rows, err := from.Query("SELECT " + inserted + " FROM " + source + ".record")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns := strings.Split(inserted, ", ")
	marks := make([]string, len(columns))
	n := 0
	for ; rows.Next(); n++ {
		values, pointers := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			pointers[i], marks[i] = &values[i], fmt.Sprintf("$%d", i+1)
		}
		if err := rows.Scan(pointers...); err != nil {
			t.Fatal(err)
		}
		if key := values[4].([]byte); string(key) == "disguised" {
			values[9] = []byte(host)
		}
		values[14] = time.Now().Add(-time.Minute).UnixNano()
		if _, err := to.Exec("INSERT INTO "+target+".record ("+inserted+") VALUES ("+strings.Join(marks, ", ")+")", values...); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil || n != 3 {
		t.Fatal(n, err)
	}
}
