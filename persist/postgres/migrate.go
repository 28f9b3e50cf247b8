package postgres

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"hash/fnv"
	"io"
	"time"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

//go:embed schema/*.sql
var schema embed.FS

// migrateTimeout bounds Migrate where its context has no deadline.
const migrateTimeout = 5 * time.Minute

// steps are the steps of the schema.
func (o Options) steps() ([]sqljournal.Step, error) {
	return sqljournal.Steps(schema, map[string]string{"schema": o.Schema})
}

// lockKey is the advisory lock of this journal's migrations.
func (o Options) lockKey() int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("oncehttp migrate " + o.Schema))
	return int64(h.Sum64())
}

// versions is the statement that makes the table of versions.
func (o Options) versions() string {
	return "CREATE TABLE IF NOT EXISTS " + o.Schema + ".schema_version (version integer NOT NULL PRIMARY KEY, oldest integer NOT NULL, applied timestamptz NOT NULL DEFAULT now())"
}

// Migrate makes the journal's tables, or brings them to the version that this program knows.
// Any number of processes may call it at once: they take turns, and each step is made once.
// It is one transaction. A schema that is newer stays as it is.
//
// Errors: ErrOptions; ErrSchema for a newer schema that this program must not use; those of
// the server; the context's.
func Migrate(ctx context.Context, url string, opts Options) error {
	opts, err := opts.checked()
	if err != nil {
		return err
	}
	db, name, err := opts.database(url, false)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if err := opts.migrate(ctx, db); err != nil {
		return fmt.Errorf("migrate journal %s: %w", name, err)
	}
	return nil
}

func (o Options) migrate(ctx context.Context, db *sql.DB) error {
	steps, err := o.steps()
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", o.lockKey()); err != nil {
		return err
	}
	if err := o.prepare(ctx, tx); err != nil {
		return err
	}
	version, oldest, err := o.version(ctx, tx)
	if err != nil {
		return err
	}
	for _, step := range steps[min(version, len(steps)):] {
		for _, statement := range append(step.Statements, o.noted(step)) {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("step %d: %w", step.Version, err)
			}
		}
		version, oldest = step.Version, step.Oldest
	}
	if err := sqljournal.CheckSchema(len(steps), version, oldest); err != nil {
		return err
	}
	return tx.Commit()
}

// prepare makes the schema and the table of versions. A schema that exists is left alone, so
// that a user who may not make one can migrate into it.
func (o Options) prepare(ctx context.Context, tx *sql.Tx) error {
	var exists bool
	if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", o.Schema).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if _, err := tx.ExecContext(ctx, "CREATE SCHEMA "+o.Schema); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, o.versions())
	return err
}

// noted is the statement that notes a step as made.
func (o Options) noted(s sqljournal.Step) string {
	return fmt.Sprintf("INSERT INTO %s.schema_version (version, oldest) VALUES (%d, %d)", o.Schema, s.Version, s.Oldest)
}

// Print writes the SQL that Migrate would run on an empty database, for administrators who
// run it themselves. Errors: ErrOptions, w's.
func Print(w io.Writer, opts Options) error {
	opts, err := opts.checked()
	if err != nil {
		return err
	}
	steps, err := opts.steps()
	if err != nil {
		return err
	}
	statements := []string{
		"BEGIN", fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", opts.lockKey()),
		"CREATE SCHEMA IF NOT EXISTS " + opts.Schema, opts.versions(),
	}
	for _, step := range steps {
		statements = append(append(statements, step.Statements...), opts.noted(step))
	}
	for _, s := range append(statements, "COMMIT") {
		if _, err := fmt.Fprintf(w, "%s;\n\n", s); err != nil {
			return err
		}
	}
	return nil
}
