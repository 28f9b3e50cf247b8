package mysql

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

//go:embed schema/*.sql
var schema embed.FS

// Migrations returns the steps of the schema as files in plain SQL: NUMBER_oncehttp_journal.sql, the number being that of the version.
// They are the steps of Migrate. Each writes its own row into the table of versions, so a program sees the same version whoever
// has made them: Migrate, goose, atlas, flyway or the client mariadb. With Options.Database, the names of the tables have it in front.
// A file is never changed after a release. With options that cannot be used, each file is the error ErrOptions.
//
//	err := os.CopyFS("migrations", mysql.Options{}.Migrations())
func (o Options) Migrations() fs.FS {
	o, err := o.checked()
	if err != nil {
		return sqljournal.NoFiles(err)
	}
	return o.files()
}

// files returns the files of Migrations, for checked options.
func (o Options) files() fs.FS { return sqljournal.Files(schema, map[string]string{"db": o.prefix()}) }

// schema returns the description of the journal's tables for sqljournal: the steps that make them, and the statements that find their version. Older finds
// tables of programs from before the first release, which had another table of versions. Missing recognises the error for a missing table.
func (o Options) schema() (*sqljournal.Schema, error) {
	steps, err := sqljournal.Steps(o.files())
	const name, older = "oncehttp_version", "oncehttp_schema"
	in := "DATABASE()"
	if o.Database != "" {
		in = "'" + o.Database + "'"
	}
	return &sqljournal.Schema{
		Steps: steps, Table: o.prefix() + name, OlderTable: o.prefix() + older, Elsewhere: "database",
		Exists: fmt.Sprintf("SELECT COUNT(*) = 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = '%s'", in, name),
		Older: fmt.Sprintf("SELECT COUNT(*) = 1 AND MAX(table_name = '%s') FROM information_schema.tables WHERE table_schema = %s AND table_name IN ('%s', '%s')",
			older, in, older, name),
		Missing: func(err error) bool {
			var my *mysql.MySQLError
			return errors.As(err, &my) && my.Number == noSuchTable
		},
	}, err
}

// lockName is an expression for the name of the lock of a database's migrations. A name may have 64 characters, and
// so may that of a database.
const lockName = "CONCAT('oncehttp migrate ', MD5(DATABASE()))"

// Migrate makes the journal's tables, or brings them to the version known to this program. Any number of processes
// may call it at once: they take turns. The server commits each statement by itself; if a migration is killed between
// two, the next one goes on, since each statement can be made again. A newer schema stays as it is, and so do tables
// from before the first release.
//
// Errors: ErrOptions; ErrSchema for a schema not allowed for this program; those of the server; the context's.
func Migrate(ctx context.Context, url string, opts Options) error {
	opts, err := opts.checked()
	if err != nil {
		return err
	}
	db, name, err := opts.database(url, 0, nil)
	if err != nil {
		return err
	}
	return sqljournal.Migrate(ctx, db, name, opts.migrate)
}

// migrate makes or upgrades the journal's tables, under a named lock of the server that keeps other processes from the same.
func (o Options) migrate(ctx context.Context, db *sql.DB) error {
	made, err := o.schema()
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx) // the lock belongs to it, and ends with it
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	var locked sql.NullInt64
	query := fmt.Sprintf("SELECT GET_LOCK(%s, %d)", lockName, sqljournal.LockSeconds)
	if err := conn.QueryRowContext(ctx, query).Scan(&locked); err != nil {
		return err
	}
	if locked.Int64 != 1 {
		return errors.New("another process has been migrating for too long")
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK("+lockName+")") }()
	return made.Make(ctx, conn)
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
	return made.Print(w, nil, nil)
}
