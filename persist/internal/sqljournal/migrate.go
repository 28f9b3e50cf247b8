package sqljournal

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ErrSchema: the database has no tables of a journal, or tables of a version that this
// program must not use. The error says what to do.
var ErrSchema = errors.New("the schema of the journal does not fit this program")

// ErrNotMigrated is an ErrSchema that Migrate ends.
var ErrNotMigrated = fmt.Errorf("%w", ErrSchema)

// Step is one step of the schema.
type Step struct {
	Version    int      // of the schema after it, from 1 on
	Oldest     int      // a program that knows this version may use the schema
	Statements []string // each one statement, without its semicolon
}

// Steps reads the steps of a folder: files named VERSION_oldest_OLDEST.sql, whose statements
// end with a semicolon at the end of a line; the body of a function stands between two $$. names are the texts for {name} in them.
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
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("%s: step %d has a wrong name: %w", file, i+1, err)
		}
		step := Step{Version: version, Oldest: oldest}
		step.Statements = statements(withNames(string(text), names))
		steps = append(steps, step)
	}
	return steps, nil
}

// statements splits a text where a line ends with a semicolon, but for those between two $$, in the body of a function.
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

// Known is the version of the schema that the steps lead to.
func Known(steps []Step) int { return len(steps) }

// CheckSchema says whether a program that knows the schema up to version known may use one
// that was migrated to version, which programs from oldest on may use.
// Errors: ErrSchema, ErrNotMigrated.
func CheckSchema(known, version, oldest int) error {
	switch {
	case version == 0:
		return fmt.Errorf("%w: it has not been made; run the journal's Migrate first", ErrNotMigrated)
	case version < known:
		return fmt.Errorf("%w: it is at version %d and this program needs version %d; run the journal's Migrate first", ErrNotMigrated, version, known)
	case version > known && oldest > known:
		return fmt.Errorf("%w: it is at version %d, which programs may use that know version %d or later; this program knows version %d; update it", ErrSchema, version, oldest, known)
	}
	return nil
}
