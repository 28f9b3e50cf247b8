package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
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
	Oldest     int      // the lowest version a program has to know to use the schema
	Statements []string // each one statement, without its semicolon
}

// Steps reads the steps of a folder: files named VERSION_oldest_OLDEST.sql. The first makes all tables; those of an earlier
// version are refused. Each later one has the next version. Their statements end with a semicolon at
// the end of a line; the body of a function stands between two $$. names are the texts for {name} in the files.
func Steps(files fs.FS, names map[string]string) ([]Step, error) {
	paths, err := fs.Glob(files, "*/*.sql")
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
		version, oldest, err := stepName(path.Base(file))
		if err != nil || i > 0 && version != steps[i-1].Version+1 {
			return nil, fmt.Errorf("%s: step %d has a wrong name: %w", file, i+1, err)
		}
		step := Step{Version: version, Oldest: oldest}
		step.Statements = statements(withNames(string(text), names))
		steps = append(steps, step)
	}
	return steps, nil
}

// statements splits a text at each line end with a semicolon, except between two $$, in the body of a function.
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

// stepName reads VERSION_oldest_OLDEST.sql.
func stepName(name string) (version, oldest int, err error) {
	first, second, ok := strings.Cut(strings.TrimSuffix(name, ".sql"), "_oldest_")
	if !ok {
		return 0, 0, errors.New("want VERSION_oldest_OLDEST.sql")
	}
	version, err = strconv.Atoi(first)
	if err == nil {
		oldest, err = strconv.Atoi(second)
	}
	return version, oldest, err
}

// withNames puts the names into a text.
func withNames(text string, names map[string]string) string {
	for name, value := range names {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// Schema is the schema of one journal. Its statements are in the engine's words.
type Schema struct {
	Steps    []Step
	Versions string // the statement to make the table of versions, unless it exists
	Table    string // the name of that table
	Insert   string // "INSERT INTO", such that a step noted before is no error
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

// Migrate calls run and closes db. run migrates the journal of this name with Schema.Make.
func Migrate(ctx context.Context, db *sql.DB, name string, run func(context.Context, *sql.DB) error) error {
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if err := run(ctx, db); err != nil {
		return fmt.Errorf("migrate journal %s: %w", name, err)
	}
	return nil
}

// Make makes the steps not noted yet. No other process may call it meanwhile. A newer schema stays as it is, and so
// do tables from before the first release.
// Errors: ErrSchema, the engine's, the context's.
func (s *Schema) Make(ctx context.Context, db Runner) error {
	if err := s.notOlder(ctx, db); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, s.Versions); err != nil {
		return err
	}
	version, oldest, err := s.version(ctx, db)
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
		for _, statement := range s.statements(step) {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("step %d: %w", step.Version, err)
			}
		}
		version, oldest = step.Version, step.Oldest
	}
	return s.fits(version, oldest)
}

// Check returns an error if this program must not use the existing schema. Errors: ErrSchema, ErrNotMigrated, the
// engine's, the context's.
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

// Print writes the statements run by Make on an empty database. The statements before and after go before and after
// them.
func (s *Schema) Print(w io.Writer, before, after []string) error {
	all := append(slices.Clone(before), s.Versions)
	for _, step := range s.Steps {
		all = append(all, s.statements(step)...)
	}
	for _, statement := range append(all, after...) {
		if _, err := fmt.Fprintf(w, "%s;\n\n", statement); err != nil {
			return err
		}
	}
	return nil
}

// statements returns the statements of a step, and the one to note the step.
func (s *Schema) statements(step Step) []string {
	noted := fmt.Sprintf("%s %s (version, oldest) VALUES (%d, %d)", s.Insert, s.Table, step.Version, step.Oldest)
	return append(slices.Clone(step.Statements), noted)
}

// version reads the version of the existing schema; zero is none.
func (s *Schema) version(ctx context.Context, db Runner) (version, oldest int, err error) {
	err = db.QueryRowContext(ctx, "SELECT version, oldest FROM "+s.Table+" ORDER BY version DESC LIMIT 1").Scan(&version, &oldest)
	if errors.Is(err, sql.ErrNoRows) || err != nil && s.Missing(err) {
		return 0, 0, nil
	}
	return version, oldest, err
}

// notOlder refuses the tables of programs from before the first release. Error: ErrSchema.
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

// fits returns an error if a program with these steps must not use a schema migrated to version. Programs from oldest
// on may use that schema. Errors: ErrSchema, ErrNotMigrated.
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
