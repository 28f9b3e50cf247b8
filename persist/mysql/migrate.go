package mysql

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
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
	return sqljournal.Steps(schema, map[string]string{"db": o.prefix()})
}

// lockName is an expression of the lock of a database's migrations. A name may have 64
// characters, and so may that of a database.
const lockName = "CONCAT('oncehttp migrate ', MD5(DATABASE()))"

// versions is the statement that makes the table of versions.
func (o Options) versions() string {
	return "CREATE TABLE IF NOT EXISTS " + o.prefix() + "oncehttp_schema (version INT NOT NULL PRIMARY KEY, oldest INT NOT NULL, applied TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB"
}

// Migrate makes the journal's tables, or brings them to the version that this program knows.
// Any number of processes may call it at once: they take turns. The server commits each
// statement by itself; where a migration is killed between two, the next one goes on, since
// each statement can be made again. A schema that is newer stays as it is.
//
// Errors: ErrOptions; ErrSchema for a newer schema that this program must not use; those of
// the server; the context's.
func Migrate(ctx context.Context, url string, opts Options) error {
	opts, err := opts.checked()
	if err != nil {
		return err
	}
	db, name, err := opts.database(url, 0, false)
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
	conn, err := db.Conn(ctx) // the lock belongs to it, and ends with it
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	var locked sql.NullInt64
	query := fmt.Sprintf("SELECT GET_LOCK(%s, %d)", lockName, int(migrateTimeout/time.Second))
	if err := conn.QueryRowContext(ctx, query).Scan(&locked); err != nil {
		return err
	}
	if locked.Int64 != 1 {
		return errors.New("another process has been migrating for too long")
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK("+lockName+")") }()
	if _, err := conn.ExecContext(ctx, o.versions()); err != nil {
		return err
	}
	version, oldest, err := o.version(ctx, conn)
	if err != nil {
		return err
	}
	for _, step := range steps[min(version, len(steps)):] {
		for _, statement := range append(step.Statements, o.noted(step)) {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("step %d: %w", step.Version, err)
			}
		}
		version, oldest = step.Version, step.Oldest
	}
	return sqljournal.CheckSchema(len(steps), version, oldest)
}

// noted is the statement that notes a step as made.
func (o Options) noted(s sqljournal.Step) string {
	return fmt.Sprintf("INSERT IGNORE INTO %soncehttp_schema (version, oldest) VALUES (%d, %d)", o.prefix(), s.Version, s.Oldest)
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
	statements := []string{opts.versions()}
	for _, step := range steps {
		statements = append(append(statements, step.Statements...), opts.noted(step))
	}
	for _, s := range statements {
		if _, err := fmt.Fprintf(w, "%s;\n\n", s); err != nil {
			return err
		}
	}
	return nil
}
