package postgres_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// TestVacuumedFiles: bodies that went with the success are in no row, and after VACUUM still in the table's file. After VACUUM FULL they are not. It
// reads the file through the server, which allows it to few.
func TestVacuumedFiles(t *testing.T) {
	t.Parallel()
	const n = 100
	e := engine(t)
	var path string
	var found int
	inFile := "SELECT pg_relation_filepath('" + e.Records + "'), position('vacuum-canary'::bytea IN pg_read_binary_file(pg_relation_filepath('" + e.Records + "')))"
	if err := e.DB.QueryRow(inFile).Scan(&path, &found); code(err) == "42501" {
		if os.Getenv("ONCEHTTP_REQUIRE_SERVICES") == "1" {
			t.Fatal("the server does not let this role read its files, and ONCEHTTP_REQUIRE_SERVICES is 1")
		}
		t.Skip("the server does not let this role read its files")
	} else if err != nil {
		t.Fatal(err)
	}
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusCreated) }))
	t.Cleanup(api.Close)
	c, err := oncehttp.New(oncehttp.Config{Journal: e.Open(t, e.Address, 30*time.Second), Origins: sqltest.Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for i := range n {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api.URL, strings.NewReader(`{"card":"vacuum-canary"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.DoKey(req, oncehttp.Key(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := func(statement string) {
		t.Helper()
		if _, err := e.DB.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	var rows int
	if err := e.DB.QueryRow("SELECT count(*) FROM " + e.Records + " r WHERE position('vacuum-canary' IN r::text) > 0 OR position(encode('vacuum-canary', 'hex') IN r::text) > 0").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows have a body, %v", rows, err)
	}
	run("VACUUM " + e.Records)
	run("CHECKPOINT")
	if err := e.DB.QueryRow(inFile).Scan(&path, &found); err != nil || found == 0 {
		t.Errorf("after VACUUM the bodies are in no page, %v: say so in docs/security.md", err)
	}
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) { // other tests' snapshots keep dead rows for a while
		run("VACUUM FULL " + e.Records)
		if err := e.DB.QueryRow(inFile).Scan(&path, &found); err != nil {
			t.Fatal(err)
		}
		if found == 0 {
			return
		}
		if time.Since(start) > 30*time.Second {
			t.Fatal("after VACUUM FULL bodies are in the file")
		}
	}
}
