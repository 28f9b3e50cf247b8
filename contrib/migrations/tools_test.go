package migrations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"testing"

	"ariga.io/atlas/sql/migrate"
	_ "ariga.io/atlas/sql/mysql"
	_ "ariga.io/atlas/sql/postgres"
	"ariga.io/atlas/sql/schema"
	"ariga.io/atlas/sql/sqlclient"
	"ariga.io/atlas/sql/sqltool"
	"github.com/pressly/goose/v3"
)

// tool runs the steps of a folder that its table of versions does not name, and returns the names of the files that were run.
type tool struct {
	table  string // its own name for the table of versions
	run    func(t *testing.T, p *place, files fs.FS, table string) ([]string, error)
	shared string // error of a table that has later versions of other steps; none for atlas
}

// tools are the tools.
var tools = map[string]tool{
	"goose": {"goose_db_version", byGoose, "lower than database version (20260101000000)"},
	"atlas": {"atlas_schema_revisions", byAtlas, ""},
}

// byGoose runs the steps with goose.
func byGoose(t *testing.T, p *place, files fs.FS, table string) (names []string, err error) {
	t.Helper()
	provider, err := goose.NewProvider(p.dialect, p.db, files, goose.WithTableName(table), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(t.Context())
	for _, result := range results {
		names = append(names, path.Base(result.Source.Path))
	}
	return names, err
}

// byAtlas runs the steps with atlas, a transaction for each file, as its command does.
func byAtlas(t *testing.T, p *place, files fs.FS, table string) ([]string, error) {
	t.Helper()
	dir := hashed(t, files)
	client, pending, err := atlas(t, p, dir, table, migrate.WithAllowDirty(true))
	if errors.Is(err, migrate.ErrNoPendingFiles) {
		return nil, nil
	}
	var names []string
	for _, file := range pending {
		if err := inTransaction(t.Context(), client, dir, file, table); err != nil {
			return names, err
		}
		names = append(names, file.Name())
	}
	return names, err
}

// hashed is a folder of atlas with the files and their hashes: the command "atlas migrate hash".
func hashed(t *testing.T, files fs.FS) *sqltool.GooseDir {
	t.Helper()
	dir := unhashed(t, files)
	sum, err := dir.Checksum()
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate.WriteSumFile(dir, sum); err != nil {
		t.Fatal(err)
	}
	return dir
}

// unhashed is a folder of atlas with the files alone.
func unhashed(t *testing.T, files fs.FS) *sqltool.GooseDir {
	t.Helper()
	at := t.TempDir()
	if err := os.CopyFS(at, files); err != nil {
		t.Fatal(err)
	}
	dir, err := sqltool.NewGooseDir(at)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// atlas opens the place and returns the steps of the folder that the table of versions does not name.
func atlas(t *testing.T, p *place, dir migrate.Dir, table string, options ...migrate.ExecutorOption) (*sqlclient.Client, []migrate.File, error) {
	t.Helper()
	client, err := sqlclient.Open(t.Context(), p.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	r := revisions{client, table}
	if err := r.exec(t.Context(), "CREATE TABLE IF NOT EXISTS %s (version VARCHAR(255) PRIMARY KEY, applied INT NOT NULL, total INT NOT NULL, hash TEXT NOT NULL)", table); err != nil {
		t.Fatal(err)
	}
	executor, err := migrate.NewExecutor(client, dir, r, options...)
	if err != nil {
		t.Fatal(err)
	}
	pending, err := executor.Pending(t.Context())
	return client, pending, err
}

// inTransaction runs one file in a transaction.
func inTransaction(ctx context.Context, client *sqlclient.Client, dir migrate.Dir, file migrate.File, table string) error {
	tx, err := client.Tx(ctx, nil)
	if err != nil {
		return err
	}
	executor, err := migrate.NewExecutor(tx, dir, revisions{tx, table})
	if err == nil {
		err = executor.Execute(ctx, file)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// revisions is the table of versions of atlas. The command has one of its own; the library takes it from the program.
type revisions struct {
	db    schema.ExecQuerier
	table string
}

// exec runs a statement. The values are versions and hashes, which need no quoting.
func (r revisions) exec(ctx context.Context, format string, args ...any) error {
	_, err := r.db.ExecContext(ctx, fmt.Sprintf(format, args...))
	return err
}

// Ident implements [migrate.RevisionReadWriter].
func (r revisions) Ident() *migrate.TableIdent { return &migrate.TableIdent{Name: r.table} }

// ReadRevisions implements [migrate.RevisionReadWriter].
func (r revisions) ReadRevisions(ctx context.Context) (all []*migrate.Revision, err error) {
	rows, err := r.db.QueryContext(ctx, "SELECT version, applied, total, hash FROM "+r.table+" ORDER BY version")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		one := &migrate.Revision{Type: migrate.RevisionTypeExecute}
		if err := rows.Scan(&one.Version, &one.Applied, &one.Total, &one.Hash); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// ReadRevision implements [migrate.RevisionReadWriter].
func (r revisions) ReadRevision(ctx context.Context, version string) (*migrate.Revision, error) {
	all, err := r.ReadRevisions(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.Version == version {
			return one, nil
		}
	}
	return nil, migrate.ErrRevisionNotExist
}

// WriteRevision implements [migrate.RevisionReadWriter].
func (r revisions) WriteRevision(ctx context.Context, one *migrate.Revision) error {
	if err := r.DeleteRevision(ctx, one.Version); err != nil {
		return err
	}
	return r.exec(ctx, "INSERT INTO %s (version, applied, total, hash) VALUES ('%s', %d, %d, '%s')", r.table, one.Version, one.Applied, one.Total, one.Hash)
}

// DeleteRevision implements [migrate.RevisionReadWriter].
func (r revisions) DeleteRevision(ctx context.Context, version string) error {
	return r.exec(ctx, "DELETE FROM %s WHERE version = '%s'", r.table, version)
}
