package postgres_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// shadows are functions that fit a call by its arguments better than those of pg_catalog do, or just as well.
var shadows = []string{
	"nextval(text) RETURNS bigint", "cardinality(bytea[]) RETURNS integer", "array_length(bytea[], integer) RETURNS integer",
	"has_function_privilege(regprocedure, text) RETURNS boolean",
	"unnest(bytea[]) RETURNS SETOF bytea", "unnest(bigint[]) RETURNS SETOF bigint", "num_nulls(bytea, bigint) RETURNS integer",
}

// TestShadowedFunctions: whoever may make functions in a schema of the search path has none of them called by a journal's statements.
func TestShadowedFunctions(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts, other := migrated(t, db), schema(t, db).Schema
	statements := []string{"CREATE SCHEMA " + other}
	for _, f := range shadows {
		head, result, _ := strings.Cut(f, " RETURNS ")
		statements = append(statements, fmt.Sprintf("CREATE FUNCTION %s.%s RETURNS %s LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'shadowed by %%', '%s'; END $$",
			other, head, result, strings.ReplaceAll(f, "'", "")))
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", other)
	u.RawQuery = q.Encode()
	j := open(t, u.String(), opts)
	begun, created, err := j.Begin(t.Context(), sqltest.Record("a", "one"))
	if err != nil || !created {
		t.Fatalf("Begin: created %t, %v", created, err)
	}
	if _, err := j.Update(t.Context(), begun); err != nil {
		t.Errorf("Update: %v", err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, s := range []string{"SET LOCAL search_path = " + other, "SELECT * FROM " + opts.Schema + ".write_records('100', '{}', '{}', '{}', '{}')"} {
		if _, err := tx.Exec(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	_ = tx.Rollback()
	if tx, err = db.Begin(); err != nil {
		t.Fatal(err)
	}
	if _, created, err := j.BeginTx(t.Context(), tx, sqltest.Record("a", "two")); err != nil || !created {
		t.Errorf("BeginTx: created %t, %v", created, err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	var numbers []uint64
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) { // gives the second its number
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, rec.Seq)
	}
	if !slices.Equal(numbers, []uint64{1, 2}) {
		t.Errorf("listed %d", numbers)
	}
}
