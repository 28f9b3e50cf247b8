package mysql_test

import (
	"net/url"
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestBeginTx(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"", "a"} {
		t.Run("keys "+keys, func(t *testing.T) {
			t.Parallel()
			e := engine(t)
			sqltest.BeginTx(t, e, keys, e.SQLTx)
		})
	}
}

// TestBeginTxElsewhere: a transaction that has another database begins in that of the journal.
func TestBeginTxElsewhere(t *testing.T) {
	t.Parallel()
	root := pool(t, "")
	opts := migrated(t, root)
	u := address(t, opts.Database)
	opts.Database = ""
	j := open(t, u, opts)
	tx, err := root.Begin() // without a database
	if err != nil {
		t.Fatal(err)
	}
	if _, created, err := j.BeginTx(t.Context(), tx, sqltest.Record("a", "k")); err != nil || !created {
		t.Fatalf("created %t, %v", created, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Get(t.Context(), sqltest.Record("a", "k").ID); err != nil {
		t.Error(err)
	}
}

// address is the URL of a database of the server.
func address(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	return u.String()
}
