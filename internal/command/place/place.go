// Package place finds and opens journals: files, databases, and files held by another process.
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
	"github.com/oncehttp/oncehttp/internal/dsn"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/redis"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// Place is the location of a journal: a file, or a database server.
type Place struct {
	Path string   // of the file; empty for a server
	URL  *url.URL // of the server, with its password, only for the driver; nil for a file
	Name string   // the journal's name in messages; it holds no password
	Arg  string   // the value of --journal for the same journal; it holds no password
	Keys string   // the value of --seal-key; empty: the journal is in clear

	Direct *url.URL     // of --journal-direct; nil: as url
	Sealer *seal.Sealer // of --seal-key; nil: the journal is in clear
	Adopt  bool         // one in clear may be read although there is a sealer
	Looks  bool         // it is opened for reading
}

// engine opens and makes journals on one kind of server.
type engine struct {
	Open    func(ctx context.Context, at Place) (persist.Journal, error)
	Migrate func(ctx context.Context, at *url.URL) error // nil: nothing has to be made
	Print   func(w io.Writer, at *url.URL) error         // nil, as migrate
}

// Engines returns the functions for a journal on a database server (they open it, make its tables, and print the SQL of these) by the scheme of the server's
// URL, such as "postgres". Redis has no tables.
func Engines() map[string]engine {
	onPostgres := engine{openPostgres, migratePostgres, printPostgres}
	onMySQL := engine{openMySQL, migrateMySQL, printMySQL}
	return map[string]engine{
		"postgres": onPostgres, "postgresql": onPostgres,
		"mysql": onMySQL, "mariadb": onMySQL,
		"redis": {Open: openRedis}, "rediss": {Open: openRedis},
	}
}

// Size returns the bytes of a journal: of its file, of its tables with their indexes, or of its keys on Redis. It returns 0 if they cannot be known, as for a role
// without the right to see them. j is the open journal, without the layer that unseals it.
func (p Place) Size(ctx context.Context, j persist.Journal) (int64, error) {
	if p.IsFile() {
		info, err := os.Stat(p.Path)
		if err != nil {
			return 0, nil
		}
		return info.Size(), nil
	}
	sized, ok := j.(interface {
		Size(context.Context) (int64, error)
	})
	if !ok {
		return 0, nil
	}
	n, err := sized.Size(ctx)
	if RefusesCall(err) {
		return 0, nil
	}
	if err != nil {
		return 0, JournalError(p.Name, err)
	}
	return n, nil
}

// Engine returns the engine of a server's URL. Parse lets no other scheme through.
func (p Place) Engine() engine { return Engines()[p.URL.Scheme] }

// IsFile reports whether the journal is a file, which one process holds at a time.
func (p Place) IsFile() bool { return p.URL == nil }

// Folder returns the folder for temporary files with data of the journal: that of its file, or the system's.
func (p Place) Folder() string {
	if p.IsFile() {
		return filepath.Dir(p.Path)
	}
	return os.TempDir()
}

// Short returns a short name of the journal for labels and headings: the name of its file without the folder, or the server and its database, with the schema or the
// prefix of the URL. It has neither a user nor a password.
func (p Place) Short() string {
	if p.IsFile() {
		return filepath.Base(p.Path)
	}
	text := strings.TrimSuffix(p.URL.Host+p.URL.Path, "/")
	for _, name := range []string{schemaParameter, prefixParameter} {
		if value := p.URL.Query().Get(name); value != "" {
			text += "?" + name + "=" + value
		}
	}
	return text
}

// FilesOnly returns an error for a journal on a server. The parameter what names the thing that is possible for files only; instead is the advice.
func (p Place) FilesOnly(what, instead string) error {
	if p.IsFile() {
		return nil
	}
	return fmt.Errorf("journal %s: %s is for journals in a file; %s", p.Name, what, instead)
}

// JournalUsage is the help of --journal.
const JournalUsage = "the journal: a file, a URL of a database, or @FILE with a URL; see help journals"

// wantURL is the wanted form in errors about an unreadable text. The text itself is not shown: it may hold a password.
const wantURL = "want a URL such as postgres://user@host:5432/database; in it a password must be percent-encoded, and so it is not shown"

// hasScheme matches a text meant as a URL.
var hasScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// Parse reads a journal's place: the name of a file, a URL, or @FILE with a URL as its only line. Its errors do not name the source of
// the text: placeFrom does.
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
	// A password without encoding leaves parts of itself in other places.
	if err != nil || u.Fragment != "" || strings.Contains(u.Path, "@") || strings.Contains(u.RawQuery, "@") || strings.ContainsAny(text, "\r\n") {
		return Place{}, errors.New("the URL cannot be read; " + wantURL)
	}
	if _, known := Engines()[u.Scheme]; !known {
		return Place{}, fmt.Errorf("journals are not kept at %s://; want a file, or a URL of %s", u.Scheme, strings.Join(slices.Sorted(maps.Keys(Engines())), ", "))
	}
	if strings.HasPrefix(u.Scheme, "postgres") && !namesDatabase(u) {
		return Place{}, errors.New("the URL names no database; want one such as postgres://user@host:5432/database, or PGDATABASE")
	}
	name := publicURL(u)
	return Place{URL: u, Name: name, Arg: name}, nil
}

// namesDatabase reports whether a URL or the environment names a database of PostgreSQL. Without a name the driver takes one that is called
// as the user is, and so maybe another than was meant.
func namesDatabase(u *url.URL) bool {
	q := u.Query()
	return strings.Trim(u.Path, "/") != "" || q.Get("dbname") != "" || q.Get("database") != "" || q.Get("service") != "" ||
		os.Getenv("PGDATABASE") != "" || os.Getenv("PGSERVICE") != ""
}

// publicURL returns the URL without its password and secret parameters, for messages and commands to copy. It names the same journal.
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

// isSecretParameter reports whether a parameter of a URL is called like a secret. Two names have "key" in them and are none: keepParameter is a time, and
// sslkey the name of a file.
func isSecretParameter(name string) bool {
	name = strings.ToLower(name)
	if name == keepParameter || name == "sslkey" {
		return false
	}
	return slices.ContainsFunc([]string{"pass", "pwd", "secret", "token", "key"}, func(word string) bool { return strings.Contains(name, word) })
}

// The sources of a journal's text, as named in errors.
const (
	FromFlag     = "--journal"
	fromVariable = "ONCEHTTP_JOURNAL"
	FromArgument = "the argument"
)

// placeFrom reads a journal's place from text: a file name, a URL, or @FILE. Its errors begin with source, such as the flag that held the text.
func placeFrom(source, text string) (Place, error) {
	at, err := Parse(text)
	if err != nil {
		return Place{}, fmt.Errorf("%s: %w", source, err)
	}
	return at, nil
}

// ErrPasswordShown returns the error for a password in the arguments of the command, which other users can see. source names the argument; file is the way to give the
// URL in a file instead.
func ErrPasswordShown(source, file string) error {
	return fmt.Errorf("%s: a password there would stand in the process list; put the URL into ONCEHTTP_JOURNAL or into a file (%s), "+
		"or the password into PGPASSWORD, ~/.pgpass, MYSQL_PWD or REDISCLI_AUTH", source, file)
}

// flagGiven returns the value of a flag as given by the call, before the configuration file is read; "" if it is not given.
func flagGiven(cmd *cobra.Command, name string) string {
	flag := cmd.Flags().Lookup(name)
	if flag == nil || !flag.Changed {
		return ""
	}
	return flag.Value.String()
}

// ShowsPassword reports whether a text is a URL with a password in it.
func ShowsPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !hasScheme.MatchString(text) {
		return false // Parse reports the error
	}
	_, inUser := u.User.Password()
	q := u.Query()
	return inUser || q.Has("password") || q.Has("sslpassword")
}

// CheckJournalFlag returns an error if --journal or --journal-direct has a password in its URL: other users can see the arguments of a call. It must
// be called before the configuration file is read: there a password is allowed.
func CheckJournalFlag(cmd *cobra.Command) error {
	if ShowsPassword(flagGiven(cmd, DirectFlag)) {
		return errDirectShown
	}
	if ShowsPassword(flagGiven(cmd, "journal")) {
		return ErrPasswordShown(FromFlag, "--journal @FILE")
	}
	return nil
}

// schemaParameter is the parameter of a URL with the schema of the tables.
const schemaParameter = "schema"

// postgresAt returns the URL for the PostgreSQL driver, and the journal's options in it, such as the schema, which the driver does not know.
func postgresAt(at *url.URL) (string, postgres.Options) {
	u, q := *at, at.Query()
	opts := postgres.Options{Schema: q.Get(schemaParameter)}
	q.Del(schemaParameter)
	u.RawQuery = q.Encode()
	return u.String(), opts
}

// openPostgres opens the journal in a PostgreSQL database; read-only if at.Looks is set. at.Direct, if not nil, is the server without the pooler, to hear of
// operations that others enqueue.
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

// migratePostgres makes or updates the tables of a journal in PostgreSQL.
func migratePostgres(ctx context.Context, at *url.URL) error {
	text, opts := postgresAt(at)
	return postgres.Migrate(ctx, text, opts)
}

// printPostgres writes the SQL statements for the tables of a journal in PostgreSQL to w, for the schema in the URL at.
func printPostgres(w io.Writer, at *url.URL) error {
	_, opts := postgresAt(at)
	return postgres.Print(w, opts)
}

// mysqlAt returns the URL for the driver, with the password of MYSQL_PWD if it has none.
func mysqlAt(at *url.URL) string {
	u := *at
	if _, has := u.User.Password(); !has && u.User != nil && os.Getenv("MYSQL_PWD") != "" {
		u.User = url.UserPassword(u.User.Username(), os.Getenv("MYSQL_PWD"))
	}
	return u.String()
}

// openMySQL opens the journal in a MySQL database; read-only if at.Looks is set.
func openMySQL(ctx context.Context, at Place) (persist.Journal, error) {
	j, err := mysql.Open(ctx, mysqlAt(at.URL), mysql.Options{ReadOnly: at.Looks})
	if err != nil {
		return nil, err
	}
	return j, nil
}

// migrateMySQL makes or updates the tables of a journal in MySQL.
func migrateMySQL(ctx context.Context, at *url.URL) error {
	return mysql.Migrate(ctx, mysqlAt(at), mysql.Options{})
}

// printMySQL writes the SQL statements for the tables of a journal in MySQL to w.
func printMySQL(w io.Writer, _ *url.URL) error { return mysql.Print(w, mysql.Options{}) }

// openServer opens the journal on a server. If the server cannot be reached, the error has the exit status for trying again later.
func openServer(p Place) (persist.Journal, error) {
	j, err := withinPatience(context.Background(), p.URL, func(ctx context.Context) (persist.Journal, error) {
		return p.Engine().Open(ctx, p) // bounded by its own time limit
	})
	if err == nil {
		return j, nil
	}
	return nil, serverError(p, err)
}

// Migrate makes or updates the tables of a journal on a server. Only engines with tables have it: the caller checks Engine().Migrate.
func (p Place) Migrate(ctx context.Context) error {
	_, err := withinPatience(ctx, p.URL, func(ctx context.Context) (persist.Journal, error) {
		return nil, p.Engine().Migrate(ctx, p.URL)
	})
	if err != nil {
		return serverError(p, err)
	}
	return nil
}

// IsMigrated reports whether the journal on a server can be opened as it is, so that journal migrate has nothing to do. Any failure is false.
func (p Place) IsMigrated(ctx context.Context) bool {
	p.Looks = true
	j, err := p.Engine().Open(ctx, p)
	if err != nil {
		return false
	}
	_ = j.Close() // of a look
	return true
}

// Missing returns an error if a journal on a server does not exist yet, since its first writer makes it, as on Redis; else nil, also if the server fails. It is for
// commands that only read.
func (p Place) Missing(ctx context.Context) error {
	p.Looks = true
	j, err := p.Engine().Open(ctx, p)
	if err == nil {
		_ = j.Close() // of a look
	}
	var missing interface{ NoJournal() string }
	if !errors.As(err, &missing) {
		return nil
	}
	return serverError(p, err)
}

// serverError returns an error of a journal on a server in words for the user, with the command that helps, such as journal migrate. An error that is likely
// to pass needs none.
func serverError(p Place, err error) error {
	said := JournalError(p.Name, err)
	switch {
	case passes(err):
		return said
	case errors.Is(err, postgres.ErrNotMigrated): // of all SQL journals
		return fmt.Errorf("%w (oncehttp journal migrate --journal %s)", said, p.Shell())
	case errors.Is(err, postgres.ErrVolatile), errors.Is(err, mysql.ErrVolatile), errors.Is(err, redis.ErrVolatile):
		return fmt.Errorf("%w (that is for programs; the command takes no such server)", said)
	}
	return said
}

// JournalText returns the flag's value, or else the value of ONCEHTTP_JOURNAL, and its source. text is empty if neither is set.
func JournalText(flag string) (text, source string) {
	if flag != "" {
		return flag, FromFlag
	}
	return os.Getenv(fromVariable), fromVariable
}
