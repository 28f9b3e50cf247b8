package place

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// DirectFlag is the flag with the address at which the command listens for operations enqueued by other processes.
const DirectFlag = "journal-direct"

// BindDirect binds --journal-direct, an addition to the --journal of a long-running command.
func BindDirect(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, DirectFlag, "", "the PostgreSQL server itself, where --journal leads through a pooler: a URL, or @FILE with it; hears what other processes enqueue")
}

// errDirectShown refuses a password in the arguments of the command.
var errDirectShown = errors.New("--journal-direct: a password there would stand in the process list; " +
	"put the URL into a file (--journal-direct @FILE), or the password into PGPASSWORD or ~/.pgpass")

// ParseDirect reads the value of --journal-direct. It returns nil if the value is empty. journal is the place named by --journal. The result has no schema:
// it is for listening alone, and the journal's own URL names that.
func ParseDirect(text string, journal Place) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	if journal.IsFile() || !onPostgres(journal) {
		return nil, fmt.Errorf("--journal-direct is for journals on PostgreSQL, and --journal is %s; leave it out", journal.Name)
	}
	at, err := placeFrom("--"+DirectFlag, text)
	switch {
	case err != nil:
		return nil, err
	case at.IsFile() || !onPostgres(at):
		return nil, errors.New("--journal-direct: " + wantURL)
	}
	direct, its := postgresAt(at.URL)
	if _, of := postgresAt(journal.URL); its.Schema != "" && its.Schema != of.Schema {
		return nil, fmt.Errorf("--journal-direct: it names the schema %s; leave that to --journal", words.Clip(its.Schema))
	}
	return url.Parse(direct)
}

// onPostgres reports whether a place is on PostgreSQL.
func onPostgres(p Place) bool {
	return !p.IsFile() && (p.URL.Scheme == "postgres" || p.URL.Scheme == "postgresql")
}
