package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

//go:embed schema/*.sql
var schema embed.FS

// Migrations returns the steps of the schema as files in plain SQL, with the name of the schema in them: NUMBER_oncehttp_journal.sql, the number being
// that of the version. They are the steps of Migrate. Each writes its own row into the table of versions, so a
// program sees the same version whoever has made them: Migrate, goose, atlas, flyway or psql. The schema itself must exist. A file is never
// changed after a release. With options that cannot be used, each file is the error ErrOptions.
//
//	err := os.CopyFS("migrations", postgres.Options{Schema: "payments"}.Migrations())
func (o Options) Migrations() fs.FS {
	o, err := o.checked()
	if err != nil {
		return sqljournal.NoFiles(err)
	}
	return o.files()
}

// files returns the files of Migrations, for checked options.
func (o Options) files() fs.FS {
	return sqljournal.Files(schema, map[string]string{"schema": o.Schema})
}

// schema returns the description of the journal's tables for sqljournal: the steps that make them, and the statements that find their version. Older finds
// tables of programs from before the first release, which had another table of versions. Missing recognises the error for a missing table.
func (o Options) schema() (*sqljournal.Schema, error) {
	steps, err := sqljournal.Steps(o.files())
	table, older := o.Schema+".version", o.Schema+".schema_version"
	return &sqljournal.Schema{
		Steps: steps, Table: table, OlderTable: older, Elsewhere: "schema",
		Exists: fmt.Sprintf("SELECT to_regclass('%s') IS NOT NULL", table),
		Older:  fmt.Sprintf("SELECT to_regclass('%s') IS NOT NULL AND to_regclass('%s') IS NULL", older, table),
		Missing: func(err error) bool {
			var pg *pgconn.PgError
			return errors.As(err, &pg) && (pg.Code == undefinedTable || pg.Code == invalidSchema)
		},
	}, err
}

// lockKey returns the number of the server's advisory lock for the migrations of this journal. Each schema has its own, so that only migrations of the same
// journal wait for each other.
func (o Options) lockKey() int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("oncehttp migrate " + o.Schema))
	return int64(h.Sum64())
}

// Migrate makes the journal's tables, or brings them to the version known to this program. Any number of processes
// may call it at once: they take turns, and each step is made once. It is one transaction. A newer schema stays as it
// is, and so do tables from before the first release.
//
// Errors: ErrOptions; ErrSchema for a schema not allowed for this program; those of the server; the context's.
func Migrate(ctx context.Context, url string, opts Options) error {
	opts, err := opts.checked()
	if err != nil {
		return err
	}
	db, name, err := opts.database(url, false)
	if err != nil {
		return err
	}
	return sqljournal.Migrate(ctx, db, name, opts.migrate)
}

// migrate makes or upgrades the journal's tables in one transaction, under a lock that keeps other processes from the same.
func (o Options) migrate(ctx context.Context, db *sql.DB) error {
	made, err := o.schema()
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
	if err := made.Make(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// prepare makes the journal's schema, unless it exists. An existing schema is left alone, so that a role without the right to make one can migrate into it.
func (o Options) prepare(ctx context.Context, tx *sql.Tx) error {
	var exists bool
	err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", o.Schema).Scan(&exists)
	if err == nil && !exists {
		_, err = tx.ExecContext(ctx, "CREATE SCHEMA "+o.Schema)
	}
	return err
}

// Print writes the SQL run by Migrate on an empty database, for administrators to run by hand. Errors: ErrOptions,
// w's.
func Print(w io.Writer, opts Options) error {
	if w == nil {
		return fmt.Errorf("%w: no writer to print to", ErrOptions)
	}
	opts, err := opts.checked()
	if err != nil {
		return err
	}
	made, err := opts.schema()
	if err != nil {
		return err
	}
	before := []string{"BEGIN", fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", opts.lockKey()), "CREATE SCHEMA IF NOT EXISTS " + opts.Schema}
	return made.Print(w, before, []string{"COMMIT"})
}
