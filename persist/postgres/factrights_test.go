package postgres_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// TestFactRights: a role that has no right on the table of facts reads a sealed journal, and begins nothing in it.
func TestFactRights(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	name := sqltest.Name()
	run := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := db.Exec(strings.NewReplacer("oncehttp.", opts.Schema+".", "SCHEMA oncehttp", "SCHEMA "+opts.Schema, "shop", name).Replace(s)); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	run("CREATE ROLE shop LOGIN")
	t.Cleanup(func() { run("DROP OWNED BY shop", "DROP ROLE shop") })
	run("GRANT USAGE ON SCHEMA oncehttp TO shop", "GRANT SELECT ON oncehttp.version TO shop",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON oncehttp.record TO shop", "GRANT USAGE ON SEQUENCE oncehttp.record_seq TO shop")
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(name)
	sqltest.FactRights(t, func() persist.Journal { return open(t, server(t), opts) }, func() persist.Journal { return open(t, u.String(), opts) })
}
