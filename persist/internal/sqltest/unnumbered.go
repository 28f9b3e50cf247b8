package sqltest

import (
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// Unnumbered begins an operation in a transaction whose record another one has committed, and which has no number (Seq, the order of listings) yet. While
// the transaction is open and has locked the record, no call may say that there is no such operation: a listing for its key has it, and a longer one may leave
// it out with an error.
func Unnumbered(t *testing.T, e Engine) {
	ctx, j := t.Context(), e.Open(t, e.Address, 15*time.Second)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:1/", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := client.Prepare(req, "k")
	if err != nil {
		t.Fatal(err)
	}
	first := begun(j, Record(rec.Account, "numbered"))
	maker := e.begin(t, sql.LevelReadCommitted)
	if _, created, err := e.Begin(ctx, maker, rec); err != nil || !created {
		t.Fatalf("Begin: created %t, error %v", created, err)
	}
	if err := maker.Commit(); err != nil {
		t.Fatal(err)
	}
	holder := e.begin(t, sql.LevelReadCommitted)
	if _, created, err := e.Begin(ctx, holder, rec); err != nil || created {
		t.Fatalf("Begin of what exists: created %t, error %v", created, err)
	}

	got, err := client.Lookup(ctx, "k")
	if err != nil || got.State != persist.StatePending || got.Key != "k" {
		t.Errorf("Lookup: %v, error %v", got.State, err)
	}
	if err := client.Settle(ctx, "k", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, oncehttp.AsSeen(got)); errors.Is(err, persist.ErrNotFound) {
		t.Errorf("Settle: %v", err)
	}
	unnumberedIn(t, j, persist.Query{Account: rec.Account, Key: "k"}, 1, false)
	unnumberedIn(t, j, persist.Query{Account: rec.Account}, 2, true)
	unnumberedIn(t, j, persist.Query{Account: rec.Account, Origin: first.Origin}, 1, false)
	for _, err := range j.List(ctx, persist.Query{Account: rec.Account, After: first.Seq}) { // it will come later
		if err != nil {
			t.Errorf("List after a number: %v", err)
		}
	}
	_ = holder.Rollback()
	unnumberedIn(t, j, persist.Query{Account: rec.Account}, 2, false)
	unnumberedIn(t, j, persist.Query{Account: rec.Account, Key: "k", After: first.Seq}, 1, false)
}

// unnumberedIn checks that a listing has n records or, if may is set, fewer and an error at its end.
func unnumberedIn(t *testing.T, j persist.Journal, q persist.Query, n int, may bool) {
	t.Helper()
	met := 0
	var failed error
	for _, err := range j.List(t.Context(), q) {
		if failed = err; err == nil {
			met++
		}
	}
	if met != n && !(may && met == n-1 && failed != nil && strings.Contains(failed.Error(), "left out")) || met == n && failed != nil {
		t.Errorf("List of %+v has %d records, error %v; want %d", q, met, failed, n)
	}
}
