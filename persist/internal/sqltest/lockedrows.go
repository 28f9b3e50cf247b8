package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// LockedRows locks the row of one of two operations in a transaction that is left open. A claim takes the other one alone, at once and without an
// error. After the end of the transaction it takes the locked one.
func LockedRows(t *testing.T, e Engine) {
	j := e.Open(t, e.Address, 30*time.Second)
	claimer, ok := persist.As[persist.Claimer](j)
	if !ok {
		t.Fatal("no leases")
	}
	locked := begun(j, Record("a", "locked"))
	begun(j, Record("a", "free"))
	tx := e.begin(t, sql.LevelReadCommitted)
	var seq int64
	if err := tx.QueryRow("SELECT seq FROM " + e.Records + " WHERE created = " + fmt.Sprint(locked.Created.UnixNano()) + " FOR UPDATE").Scan(&seq); err != nil {
		t.Fatal(err)
	}
	claim := func(want string) {
		t.Helper()
		claimed, _, err := claimer.Claim(t.Context(), persist.Query{Account: "a"}, "me", time.Hour, 2)
		if err != nil || len(claimed) != 1 || claimed[0].Key != want {
			t.Errorf("claimed %d, %v; want %q alone", len(claimed), err, want)
		}
	}
	claim("free")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	claim("locked")
}

// OneClient tests a handler that calls MarkDelivered after its own Do. If its client has no OnResult, MarkDelivered returns true: the result is the handler's,
// and nobody else has it. rec.Results says that somebody wants the result, as if begun by a client with OnResult. If the client has OnResult, the Do has marked
// the result already, and MarkDelivered returns false.
func OneClient(t *testing.T, e Engine) {
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusCreated) }))
	t.Cleanup(api.Close)
	for key, onResult := range map[oncehttp.Key]func(context.Context, persist.Record) error{
		"two-clients": nil, "one-client": func(context.Context, persist.Record) error { return nil },
	} {
		j := e.Open(t, e.Address, 30*time.Second)
		c, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback(), OnResult: onResult})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		rec, err := c.Prepare(post(t.Context(), t, api.URL), key)
		if err != nil {
			t.Fatal(err)
		}
		rec.Results = true
		begin := e.begin(t, sql.LevelReadCommitted)
		if _, created, err := e.Begin(t.Context(), begin, rec); err != nil || !created {
			t.Fatal(created, err)
		}
		if err := begin.Commit(); err != nil {
			t.Fatal(err)
		}
		resp, err := c.DoKey(post(t.Context(), t, api.URL), key)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		got, err := c.Lookup(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		mark := e.begin(t, sql.LevelReadCommitted)
		if mine, err := e.MarkDelivered(t.Context(), mark, got.ID, got.Revision); err != nil || mine != (onResult == nil) {
			t.Errorf("%s: MarkDelivered: %t, %v", key, mine, err)
		}
		if err := mark.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}
