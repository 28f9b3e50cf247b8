package atrest_test

import (
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestFactsInserted: who may INSERT into the facts of a journal stops one that nobody has used yet, and clients without credentials, and changes
// what the command says of operations. Nothing is sent by it.
func TestFactsInserted(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, at string) {
		if !strings.HasPrefix(at, "postgres") {
			return
		}
		db, table := commandtest.Records(t, at)
		fact := strings.TrimSuffix(table, ".record") + ".fact"
		insert := func(name, value string) {
			t.Helper()
			must(t, db, "INSERT INTO "+fact+" VALUES ($1, $2)", name, []byte(value))
		}
		sealStops(t, at, db, fact, insert)

		a, j := newAPI(t), open(t, at, false)
		t.Cleanup(func() { _ = j.Close() })
		if err := pay(t, a, client(t, j, a), "paid", whole); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("INSERT INTO "+fact+" VALUES ('seal', $1)", []byte("\x01")); err == nil {
			t.Error("a fact that stands can be inserted once more")
		}
		list := func() string { return commandtest.Run(t, "journal", "list", "--journal", at).Want(t, 0).Out }
		if before := list(); strings.Contains(before, "declined") {
			t.Fatal(before)
		}
		insert("declined", "/answer=answer-canary")
		if after := list(); !strings.Contains(after, "declined") {
			t.Errorf("a payment that was made is still one in\n%s", after)
		}
	})
}

// sealStops inserts facts before the first use of a journal, and takes them back.
func sealStops(t *testing.T, at string, db *sql.DB, fact string, insert func(name, value string)) {
	t.Helper()
	for _, name := range []string{persist.FactSeal, persist.FactOrigins} {
		insert(name, "\x01")
		a, j := newAPI(t), open(t, at, false)
		c, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: []string{a.URL}, Retry: oncehttp.Policy{MaxAttempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL, strings.NewReader(whole)) // without credentials
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.DoKey(req, "stopped")
		if err == nil {
			_ = resp.Body.Close()
		}
		if sends, _ := a.seen(); err == nil || sends != 0 || name == persist.FactSeal && !errors.Is(err, persist.ErrSealed) {
			t.Errorf("beside the fact %q: %d sends, %v", name, sends, err)
		}
		if err := errors.Join(c.Close(), j.Close()); err != nil {
			t.Error(err)
		}
		if _, err := db.Exec("DELETE FROM " + fact); err != nil {
			t.Fatal(err)
		}
	}
}
