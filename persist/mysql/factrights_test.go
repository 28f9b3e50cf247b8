package mysql_test

import (
	"net/url"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// TestFactRights: as on PostgreSQL.
func TestFactRights(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	opts := migrated(t, db)
	name := sqltest.Name()
	at := name + "@'127.0.0.1'"
	run := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	run("CREATE USER " + at + " IDENTIFIED BY 'hunter2'")
	t.Cleanup(func() { run("DROP USER " + at) })
	for _, table := range []string{"version", "gate", "record", "used", "used_until"} {
		run("GRANT SELECT, INSERT, UPDATE, DELETE ON " + opts.Database + ".oncehttp_" + table + " TO " + at)
	}
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "hunter2")
	sqltest.FactRights(t, func() persist.Journal { return open(t, server(t), opts) }, func() persist.Journal { return open(t, u.String(), opts) })
}
