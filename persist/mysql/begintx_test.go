package mysql_test

import (
	"errors"
	"net/url"
	"strconv"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
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

// TestBeginTxOnAnotherServer: a transaction in tables with another secret, those of another server, begins nothing, and goes on.
func TestBeginTxOnAnotherServer(t *testing.T) {
	t.Parallel()
	root := pool(t, "")
	opts := migrated(t, root)
	j := open(t, address(t, opts.Database), opts)
	if _, err := j.Secret(t.Context()); err != nil {
		t.Fatal(err)
	}
	fact := "`" + opts.Database + "`.oncehttp_fact"
	for i, change := range []string{"", "UPDATE " + fact + " SET value = REVERSE(value) WHERE name = 'journal.secret'", "DELETE FROM " + fact} {
		if change != "" {
			if _, err := root.Exec(change); err != nil {
				t.Fatal(err)
			}
		}
		tx, err := root.Begin()
		if err != nil {
			t.Fatal(err)
		}
		rec := sqltest.Record("a", "k"+strconv.Itoa(i))
		_, created, err := persist.BeginTx(t.Context(), j, tx, rec)
		switch {
		case i == 0 && (!created || err != nil):
			t.Errorf("of the journal's own: created %t, %v", created, err)
		case i > 0 && (created || !errors.Is(err, persist.ErrInvalid) || !errors.Is(err, persist.ErrOutcomeUnknown)):
			t.Errorf("of another server: created %t, %v", created, err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if _, err := j.Get(t.Context(), rec.ID); (err == nil) != (i == 0) {
			t.Errorf("after the commit: %v", err)
		}
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
