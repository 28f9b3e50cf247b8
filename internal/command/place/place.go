// Package place finds and opens journals: files, databases, and the files that another process holds.
package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/dsn"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/redis"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// Place is where a journal is: a file, or a database server.
type Place struct {
	Path string   // of the file; empty for a server
	URL  *url.URL // of the server, with its password, which only the driver sees; nil for a file
	Name string   // what messages call the journal; it holds no password
	Arg  string   // what --journal takes for the same journal; it holds no password

	Direct *url.URL     // of --journal-direct; nil: as url
	Sealer *seal.Sealer // of --seal-key; nil: the journal is in clear
	Adopt  bool         // one in clear may be read although there is a sealer
	Looks  bool         // it is opened for reading
}

// engine is how journals on one kind of server are opened and made.
type engine struct {
	Open    func(ctx context.Context, at Place) (persist.Journal, error)
	Migrate func(ctx context.Context, at *url.URL) error // nil: nothing has to be made
	Print   func(w io.Writer, at *url.URL) error         // nil, as migrate
}

// Engines are the kinds of servers, by the scheme of their URLs.
func Engines() map[string]engine {
	onPostgres := engine{openPostgres, migratePostgres, printPostgres}
	onMySQL := engine{openMySQL, migrateMySQL, printMySQL}
	return map[string]engine{
		"postgres": onPostgres, "postgresql": onPostgres,
		"mysql": onMySQL, "mariadb": onMySQL,
		"redis": {Open: openRedis}, "rediss": {Open: openRedis},
	}
}

// Engine is that of a server's URL. Parse lets no other scheme through.
func (p Place) Engine() engine { return Engines()[p.URL.Scheme] }

// IsFile reports whether the journal is a file, which one process holds at a time.
func (p Place) IsFile() bool { return p.URL == nil }

// Folder is where temporary files go that hold what the journal holds, too.
func (p Place) Folder() string {
	if p.IsFile() {
		return filepath.Dir(p.Path)
	}
	return os.TempDir()
}

// FilesOnly refuses what makes no sense for a server.
func (p Place) FilesOnly(what, instead string) error {
	if p.IsFile() {
		return nil
	}
	return fmt.Errorf("journal %s: %s is for journals in a file; %s", p.Name, what, instead)
}

// JournalUsage is the help of --journal.
const JournalUsage = "the journal: a file, a URL of a database, or @FILE with a URL; see help journals"

// wantURL is what a text that cannot be read should have been. It is not shown: it may
// hold a password.
const wantURL = "want a URL such as postgres://user@host:5432/database; in it a password must be percent-encoded, and so it is not shown"

// hasScheme matches a text that is meant as a URL.
var hasScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// Parse reads a journal's place: the name of a file, a URL, or @FILE whose only line
// is a URL. Its errors do not say where the text is from: placeFrom does.
func Parse(text string) (Place, error) {
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		line, err := terminal.ReadBounded(name, terminal.HeaderFileBytesMax)
		if err != nil {
			return Place{}, err
		}
		held := strings.TrimSpace(string(line))
		if !hasScheme.MatchString(held) {
			return Place{}, fmt.Errorf("%s: want one line with a URL", name)
		}
		p, err := Parse(held)
		p.Arg = text
		return p, err
	}
	if scheme, _, _ := strings.Cut(text, ":"); !hasScheme.MatchString(text) && scheme != text && Engines()[strings.ToLower(scheme)].Open != nil {
		return Place{}, fmt.Errorf("%s: without //; %s", strings.ToLower(scheme), wantURL)
	}
	if !hasScheme.MatchString(text) {
		if dsn.Engine(text) != "" {
			return Place{}, errors.New("that is how a driver is told where a database is; " + wantURL)
		}
		return Place{Path: text, Name: text, Arg: text}, nil
	}
	u, err := url.Parse(text)
	// A password that is not encoded leaves parts of itself in other places.
	if err != nil || u.Fragment != "" || strings.Contains(u.Path, "@") || strings.Contains(u.RawQuery, "@") || strings.ContainsAny(text, "\r\n") {
		return Place{}, errors.New("the URL cannot be read; " + wantURL)
	}
	if _, known := Engines()[u.Scheme]; !known {
		return Place{}, fmt.Errorf("journals are not kept at %s://; want a file, or a URL of %s", u.Scheme, strings.Join(slices.Sorted(maps.Keys(Engines())), ", "))
	}
	name := publicURL(u)
	return Place{URL: u, Name: name, Arg: name}, nil
}

// publicURL spells the URL so that it reaches the same journal in the same way, with no password.
func publicURL(u *url.URL) string {
	public := *u
	public.User = nil
	if name := u.User.Username(); name != "" {
		public.User = url.User(name)
	}
	shown := u.Query()
	maps.DeleteFunc(shown, func(name string, _ []string) bool { return isSecretParameter(name) })
	public.RawQuery = shown.Encode()
	return public.String()
}

// isSecretParameter reports whether a parameter of a URL is called like a secret. sslkey is the name of a file.
func isSecretParameter(name string) bool {
	name = strings.ToLower(name)
	if name == keepParameter || name == "sslkey" {
		return false
	}
	return slices.ContainsFunc([]string{"pass", "pwd", "secret", "token", "key"}, func(word string) bool { return strings.Contains(name, word) })
}

// The places of a journal's text, as errors call them.
const (
	FromFlag     = "--journal"
	fromVariable = "ONCEHTTP_JOURNAL"
	FromArgument = "the argument"
)

// placeFrom is Parse for a text of which the error says where it is from.
func placeFrom(source, text string) (Place, error) {
	at, err := Parse(text)
	if err != nil {
		return Place{}, fmt.Errorf("%s: %w", source, err)
	}
	return at, nil
}

// ErrPasswordShown refuses a password in the arguments of the command. file is how a file is given instead.
func ErrPasswordShown(source, file string) error {
	return fmt.Errorf("%s: a password there would stand in the process list; put the URL into ONCEHTTP_JOURNAL or into a file (%s), "+
		"or the password into PGPASSWORD, ~/.pgpass, MYSQL_PWD or REDISCLI_AUTH", source, file)
}

// flagGiven is the value of a flag as the call gives it, before the configuration file is read; empty if it does not.
func flagGiven(cmd *cobra.Command, name string) string {
	flag := cmd.Flags().Lookup(name)
	if flag == nil || !flag.Changed {
		return ""
	}
	return flag.Value.String()
}

// ShowsPassword reports whether a text is a URL with a password, which nobody else may see.
func ShowsPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !hasScheme.MatchString(text) {
		return false // Parse says what is wrong
	}
	_, inUser := u.User.Password()
	q := u.Query()
	return inUser || q.Has("password") || q.Has("sslpassword")
}

// CheckJournalFlag refuses a password in --journal and --journal-direct as the call gives them, before the
// configuration file is read, which nobody else sees.
func CheckJournalFlag(cmd *cobra.Command) error {
	if ShowsPassword(flagGiven(cmd, DirectFlag)) {
		return errDirectShown
	}
	if ShowsPassword(flagGiven(cmd, "journal")) {
		return ErrPasswordShown(FromFlag, "--journal @FILE")
	}
	return nil
}

// schemaParameter is the parameter of a URL that names the schema of the tables.
const schemaParameter = "schema"

// postgresAt parts the URL for the driver from the options.
func postgresAt(at *url.URL) (string, postgres.Options) {
	u, q := *at, at.Query()
	opts := postgres.Options{Schema: q.Get(schemaParameter)}
	q.Del(schemaParameter)
	u.RawQuery = q.Encode()
	return u.String(), opts
}

func openPostgres(ctx context.Context, at Place) (persist.Journal, error) {
	text, opts := postgresAt(at.URL)
	opts.ReadOnly = at.Looks
	if at.Direct != nil {
		opts.ListenURL = at.Direct.String()
	}
	j, err := postgres.Open(ctx, text, opts)
	if err != nil {
		if wrong := wrongParameter(text, func(text string) error { _, err := pgconn.ParseConfig(text); return err }); wrong != nil {
			err = wrong
		}
		return nil, err
	}
	return j, nil
}

func migratePostgres(ctx context.Context, at *url.URL) error {
	text, opts := postgresAt(at)
	return postgres.Migrate(ctx, text, opts)
}

func printPostgres(w io.Writer, at *url.URL) error {
	_, opts := postgresAt(at)
	return postgres.Print(w, opts)
}

// mysqlAt is the URL for the driver, with the password of MYSQL_PWD if it has none.
func mysqlAt(at *url.URL) string {
	u := *at
	if _, has := u.User.Password(); !has && u.User != nil && os.Getenv("MYSQL_PWD") != "" {
		u.User = url.UserPassword(u.User.Username(), os.Getenv("MYSQL_PWD"))
	}
	return u.String()
}

func openMySQL(ctx context.Context, at Place) (persist.Journal, error) {
	j, err := mysql.Open(ctx, mysqlAt(at.URL), mysql.Options{ReadOnly: at.Looks})
	if err != nil {
		return nil, err
	}
	return j, nil
}

func migrateMySQL(ctx context.Context, at *url.URL) error {
	return mysql.Migrate(ctx, mysqlAt(at), mysql.Options{})
}

func printMySQL(w io.Writer, _ *url.URL) error { return mysql.Print(w, mysql.Options{}) }

// openServer opens the journal on a server. A server that cannot be reached now may be
// reached by the same command later.
func openServer(p Place) (persist.Journal, error) {
	j, err := p.Engine().Open(context.Background(), p) // bounded by its own time limit
	if err == nil {
		return j, nil
	}
	return nil, ServerError(p, err)
}

// ServerError says what is wrong with the journal on a server.
func ServerError(p Place, err error) error {
	said := JournalError(p.Name, err)
	switch {
	case passes(err):
		return said
	case errors.Is(err, postgres.ErrNotMigrated): // of all SQL journals
		return fmt.Errorf("%w (oncehttp journal migrate --journal %s)", said, words.ShellQuote(p.Arg))
	case errors.Is(err, postgres.ErrVolatile), errors.Is(err, mysql.ErrVolatile), errors.Is(err, redis.ErrVolatile):
		return fmt.Errorf("%w (that is for programs; the command takes no such server)", said)
	}
	return said
}

// JournalText is the flag's value, or that of ONCEHTTP_JOURNAL, and which of them it is; empty if there is neither.
func JournalText(flag string) (text, source string) {
	if flag != "" {
		return flag, FromFlag
	}
	return os.Getenv(fromVariable), fromVariable
}
