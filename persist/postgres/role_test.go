package postgres_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// TestRole: a role with the rights that docs/journals.md names can do all that a client does; without that to call the
// function, or without the function, Open says so.
func TestRole(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	role := sqltest.Name()
	run := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := db.Exec(strings.NewReplacer("oncehttp.", opts.Schema+".", "SCHEMA oncehttp", "SCHEMA "+opts.Schema, "shop", role).Replace(s)); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	run("CREATE ROLE shop LOGIN")
	t.Cleanup(func() { run("DROP OWNED BY shop", "DROP ROLE shop") })
	run("REVOKE EXECUTE ON FUNCTION oncehttp.write_records FROM PUBLIC",
		"GRANT USAGE ON SCHEMA oncehttp TO shop", "GRANT SELECT ON oncehttp.version TO shop",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON oncehttp.record TO shop", "GRANT SELECT, INSERT, UPDATE ON oncehttp.fact TO shop", "GRANT USAGE ON SEQUENCE oncehttp.record_seq TO shop")
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	refused := func(word string) {
		t.Helper()
		if _, err := postgres.Open(t.Context(), u.String(), opts); !errors.Is(err, postgres.ErrSchema) || !strings.Contains(err.Error(), word) {
			t.Errorf("Open: %v, want ErrSchema that says %q", err, word)
		}
	}
	refused("GRANT EXECUTE")
	run("GRANT EXECUTE ON FUNCTION oncehttp.write_records TO shop")
	j := open(t, u.String(), opts)
	rec := sqltest.Record("", "k")
	begun, created, err := j.Begin(t.Context(), rec)
	if err != nil || !created {
		t.Fatalf("Begin: %v, %v", created, err)
	}
	claimed, _, err := j.Claim(t.Context(), persist.Query{AllAccounts: true}, "worker", time.Minute, 10)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("Claim: %d, %v", len(claimed), err)
	}
	if held, _, err := j.Renew(t.Context(), "worker", time.Minute, []persist.ID{begun.ID}); err != nil || len(held) != 1 {
		t.Errorf("Renew: %d, %v", len(held), err)
	}
	if secret, err := j.Secret(t.Context()); len(secret) != persist.SecretSize {
		t.Errorf("Secret: %d bytes, %v", len(secret), err)
	}
	for _, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Errorf("List: %v", err)
		}
	}
	if err := j.Forget(t.Context(), claimed[0]); err != nil {
		t.Errorf("Forget: %v", err)
	}
	sweepsTexts(t, j, func() *postgres.Journal { return open(t, u.String(), opts) }, run)
	run("DROP FUNCTION oncehttp.write_records")
	refused("is not there")
}

// sweepsTexts: a role takes texts out of records if it may note in the facts that it does. If not, its sweeps leave them.
func sweepsTexts(t *testing.T, j persist.Journal, open func() *postgres.Journal, run func(...string)) {
	t.Helper()
	used, _, err := j.Begin(t.Context(), func() persist.Record {
		rec := sqltest.Record("", "used")
		rec.KeepText, rec.KeepAnswer = -1, -1
		return rec
	}())
	if err == nil {
		err = j.Finish(t.Context(), sqltest.Finished(used))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range []string{"REVOKE SELECT, INSERT, UPDATE ON oncehttp.fact FROM shop", "GRANT SELECT ON oncehttp.fact TO shop", "GRANT INSERT ON oncehttp.fact TO shop"} {
		run(right)
		j := open()
		if _, err := j.Sweep(t.Context(), persist.Limits{Now: time.Now().Add(1e4 * time.Hour)}); err != nil {
			t.Errorf("Sweep after %s: %v", right, err)
		}
		if rec, err := j.Get(t.Context(), used.ID); err != nil || !rec.Swept || rec.Erased != strings.HasPrefix(right, "GRANT INSERT") {
			t.Errorf("after %s and a Sweep: swept %t, without its text %t, %v", right, rec.Swept, rec.Erased, err)
		}
	}
}
