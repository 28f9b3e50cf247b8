package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrSchema: the database has no tables of a journal, or tables of a version not allowed for this program. The error
// text names the remedy.
var ErrSchema = errors.New("the schema of the journal does not fit this program")

// ErrNotMigrated is an ErrSchema with Migrate as the remedy.
var ErrNotMigrated = fmt.Errorf("%w", ErrSchema)

// Step is one step of the schema.
type Step struct {
	Version    int      // of the schema after the step
	Statements []string // each one statement, without its semicolon; one of them notes the step in the table of versions
}

// Steps reads the steps of a folder: files named VERSION_WORDS.sql, in the order of their names. The first makes all tables, at any version; tables of an
// earlier version are refused. Each later one has the next version. Their statements end with a semicolon at the end of a line; the body of a function stands
// between two $$.
func Steps(files fs.FS) ([]Step, error) {
	paths, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var steps []Step
	for i, file := range paths {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(file, "_")
		version, err := strconv.Atoi(first)
		if err != nil || i > 0 && version != steps[i-1].Version+1 {
			return nil, fmt.Errorf("%s: step %d has a wrong name, want VERSION_WORDS.sql: %w", file, i+1, err)
		}
		steps = append(steps, Step{Version: version, Statements: statements(string(text))})
	}
	return steps, nil
}

// statements splits a text into SQL statements: at each semicolon that ends a line. Between two $$, as in the body of a function, it does not split: an odd
// number of $$ means that the second one is still to come.
func statements(text string) (all []string) {
	statement := ""
	for part := range strings.SplitAfterSeq(text, ";\n") {
		statement += part
		if strings.Count(statement, "$$")%2 > 0 {
			continue
		}
		if s := strings.TrimSpace(strings.TrimSuffix(statement, ";\n")); s != "" {
			all = append(all, s)
		}
		statement = ""
	}
	return all
}

// Schema is the schema of one journal. Its statements are in the engine's words.
type Schema struct {
	Steps  []Step
	Table  string // the name of the table of versions
	Exists string // a query with the result true if Table exists
	// Older is a query with the result true if OlderTable exists and Table does not. OlderTable is the table of
	// versions of programs from before the first release. Elsewhere is the kind of another place for Migrate to make a
	// journal in.
	Older, OlderTable, Elsewhere string
	// Missing reports whether an error of the engine means a missing Table.
	Missing func(error) bool
}

// Runner runs statements: a pool, a connection or a transaction.
type Runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// migrateTimeout bounds Migrate, whatever the deadline of its context.
const migrateTimeout = 5 * time.Minute

// LockSeconds is the longest wait of Migrate for another migrating process, in seconds.
const LockSeconds = int(migrateTimeout / time.Second)

// Migrate calls run, which creates or upgrades the tables of the journal (by Schema.Make), with a time limit. It closes db. name is the journal's
// name in the error.
func Migrate(ctx context.Context, db *sql.DB, name string, run func(context.Context, *sql.DB) error) error {
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if err := run(ctx, db); err != nil {
		return fmt.Errorf("migrate journal %s: %w", name, err)
	}
	return nil
}

// Make creates or upgrades the tables: it runs the steps, the statements of one version each, that the database does not have yet. No other process may call
// it meanwhile. A newer schema stays as it is, and Check tells whether this program can use it. Tables from before the first release stay, too, and are an
// error.
// Errors: ErrSchema, the engine's, the context's.
func (s *Schema) Make(ctx context.Context, db Runner) error {
	if err := s.notOlder(ctx, db); err != nil {
		return err
	}
	version, err := s.made(ctx, db)
	if err != nil {
		return err
	}
	if 0 < version && version < s.Steps[0].Version {
		return s.tooOld(s.Table)
	}
	for _, step := range s.Steps {
		if step.Version <= version {
			continue
		}
		for _, statement := range step.Statements {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("step %d: %w", step.Version, err)
			}
		}
	}
	return s.Check(ctx, db)
}

// made returns the version of the tables in the database, or zero if there is no table of versions yet. It looks first if that table exists: a statement
// that fails for a missing table would end the transaction in which the steps run.
func (s *Schema) made(ctx context.Context, db Runner) (version int, err error) {
	exists := false
	if err := db.QueryRowContext(ctx, s.Exists).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	version, _, err = s.version(ctx, db)
	return version, err
}

// Check returns nil if this program can work with the tables of the database.
// Tables of no version may be those from before the first release (notOlder). Errors: ErrSchema for tables of another version, ErrNotMigrated if there are
// none, the engine's, the context's.
func (s *Schema) Check(ctx context.Context, db Runner) error {
	version, oldest, err := s.version(ctx, db)
	if err == nil && version == 0 {
		err = s.notOlder(ctx, db)
	}
	if err != nil {
		return err
	}
	return s.fits(version, oldest)
}

// Print writes the statements that Make would run on an empty database, for a person who runs them. Before and after them it writes those of the
// arguments.
func (s *Schema) Print(w io.Writer, before, after []string) error {
	all := slices.Clone(before)
	for _, step := range s.Steps {
		all = append(all, step.Statements...)
	}
	for _, statement := range append(all, after...) {
		if _, err := fmt.Fprintf(w, "%s;\n\n", statement); err != nil {
			return err
		}
	}
	return nil
}

// version reads the version of the tables in the database, and the oldest version of programs that can work with them. Both are zero if there are no
// tables.
func (s *Schema) version(ctx context.Context, db Runner) (version, oldest int, err error) {
	err = db.QueryRowContext(ctx, "SELECT version, oldest FROM "+s.Table+" ORDER BY version DESC LIMIT 1").Scan(&version, &oldest)
	if errors.Is(err, sql.ErrNoRows) || err != nil && s.Missing(err) {
		return 0, 0, nil
	}
	return version, oldest, err
}

// notOlder returns ErrSchema if the database has the tables of programs from before the first release. They cannot be upgraded.
func (s *Schema) notOlder(ctx context.Context, db Runner) error {
	older := false
	if err := db.QueryRowContext(ctx, s.Older).Scan(&older); err != nil || !older {
		return err
	}
	return s.tooOld(s.OlderTable)
}

// tooOld returns the error for the tables of a program from before the first release. table is one of them.
func (s *Schema) tooOld(table string) error {
	return fmt.Errorf("%w: table %s: a program from before the first release made these tables; finish its operations with that program, and migrate into another %s",
		ErrSchema, table, s.Elsewhere)
}

// fits returns an error if a program with these steps must not use a schema migrated to version. Programs that know a version from oldest on may use that
// schema. known is the newest version that this program knows. Errors: ErrSchema, ErrNotMigrated.
func (s *Schema) fits(version, oldest int) error {
	known := s.Steps[len(s.Steps)-1].Version
	switch {
	case version == 0:
		return fmt.Errorf("%w: it has not been made; run the journal's Migrate first", ErrNotMigrated)
	case version < s.Steps[0].Version:
		return s.tooOld(s.Table)
	case version < known:
		return fmt.Errorf("%w: it is at version %d and this program needs version %d; run the journal's Migrate first", ErrNotMigrated, version, known)
	case version > known && oldest > known:
		return fmt.Errorf("%w: it is at version %d, which programs may use that know version %d or later; this program knows version %d; update it", ErrSchema, version, oldest, known)
	}
	return nil
}
