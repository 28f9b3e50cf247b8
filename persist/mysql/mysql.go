package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// The defaults of Options.
const (
	defaultMaxConns    = 16
	defaultCallTimeout = 9 * time.Second
	defaultLockWait    = 2 * time.Second
)

var (
	// ErrVolatile: the server may lose acknowledged writes when its power fails, because of
	// innodb_flush_log_at_trx_commit or, with a binary log, sync_binlog. The error text names their values and the
	// needed ones. Or autocommit stays off on a new connection.
	ErrVolatile = errors.New("persist/mysql: the server may lose what it has acknowledged")
	// ErrSchema: the database has no tables of a journal, or those of a version not allowed for this program. The
	// error text names the remedy.
	ErrSchema = sqljournal.ErrSchema
	// ErrNotMigrated is an ErrSchema with Migrate as the remedy: there are no tables, or older ones.
	ErrNotMigrated = sqljournal.ErrNotMigrated
	// ErrOptions: an option or the URL cannot be used. The error text names it.
	ErrOptions = errors.New("persist/mysql: wrong options")
)

// Options describe the place of the journal and the bounds of its work. The zero value is ready.
type Options struct {
	_ struct{}

	// Database is the database of the journal's tables: letters, digits, '_' and '-', at most 64. Empty is that of the
	// URL, or of the transaction given to Begin.
	Database string
	// MaxConns bounds the connections of this journal. Zero is 16.
	MaxConns int
	// CallTimeout bounds each call of a method, with its wait for a connection and all
	// repetitions of a write in doubt. A third of it bounds one try, and the making of a
	// connection. Zero is 9 seconds.
	CallTimeout time.Duration
	// LockWait bounds the wait of a statement for another transaction, such as an open one with a Begin of the same
	// key. The server counts whole seconds, at least one. It must be shorter than a third of CallTimeout. Zero is 2
	// seconds, or 1 second if 2 are not shorter. With a CallTimeout of 3 seconds or less, a statement does not wait,
	// and is made again until CallTimeout is over.
	LockWait time.Duration
	// AllowVolatile accepts a server that may lose acknowledged writes. Otherwise innodb_flush_log_at_trx_commit has
	// to be 1, with sync_binlog = 1 if log_bin is on (its default is 0), or 3. Each new connection is checked, and so
	// is each Begin in a transaction of the caller's own.
	AllowVolatile bool
	// ReadOnly opens the journal for reading, for a role with no right but SELECT. Only Get, List, Now and DueTimes
	// work, and anything else is persist.ErrReadOnly. List gives Seq 0 to records not numbered yet by another process.
	// The check for AllowVolatile is not made then.
	ReadOnly bool

	polls bool // see LockWait; set by checked
}

// databaseName matches the allowed names of a database.
var databaseName = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)

// checked returns the options with the defaults filled in. polls is set if the time limit of a call is too short for a wait for locks, which lasts
// whole seconds: the journal then tries again instead. A LockWait of zero becomes one second then, and otherwise defaultLockWait, or as many whole seconds as
// fit.
// Error: ErrOptions for an invalid one.
func (o Options) checked() (Options, error) {
	if o.MaxConns == 0 {
		o.MaxConns = defaultMaxConns
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = defaultCallTimeout
	}
	o.polls = o.LockWait == 0 && o.CallTimeout/3 <= time.Second
	switch {
	case o.polls:
		o.LockWait = time.Second // for a Begin in a caller's transaction, which cannot be tried again
	case o.LockWait == 0:
		o.LockWait = min(defaultLockWait, (o.CallTimeout/3-1)/time.Second*time.Second) // whole seconds, less than a third
	}
	switch {
	case !databaseName.MatchString(o.Database):
		return o, fmt.Errorf("%w: Database %q: want letters, digits, '_' and '-', at most 64", ErrOptions, o.Database)
	case o.MaxConns < 1:
		return o, fmt.Errorf("%w: MaxConns %d: want at least 1", ErrOptions, o.MaxConns)
	case o.CallTimeout < 0:
		return o, fmt.Errorf("%w: CallTimeout %v: want a positive one", ErrOptions, o.CallTimeout)
	case !o.polls && (o.LockWait < time.Second || o.LockWait%time.Second != 0 || o.LockWait >= o.CallTimeout/3):
		return o, fmt.Errorf("%w: LockWait %v must be whole seconds, at least one, and shorter than a third of CallTimeout %v", ErrOptions, o.LockWait, o.CallTimeout)
	}
	return o, nil
}

// Journal is a journal on MariaDB. It implements [persist.Journal], [persist.SendClaimer],
// [persist.LateFinisher], [persist.Prober], [persist.DueTimes], [persist.SharedResults] and [persist.TxBeginner]. Make one
// with Open.
//
// A Journal not returned by Open is closed: the methods of a zero one return [persist.ErrClosed], those of a nil one
// panic.
type Journal struct {
	*sqljournal.Journal
	opts Options // of Begin in a transaction
}

var (
	_ persist.LateFinisher  = (*Journal)(nil)
	_ persist.Prober        = (*Journal)(nil)
	_ persist.SharedResults = (*Journal)(nil)
	_ persist.TxBeginner    = (*Journal)(nil)
)

// FinishesLate implements [persist.LateFinisher]: it returns the journal itself.
func (j *Journal) FinishesLate() persist.Journal { return j }

// Open opens the journal at a URL such as mysql://user:password@host:3306/database. ?tls=true may be added to the
// URL. Open never changes the schema. ctx bounds the opening alone; the opening also ends after Options.CallTimeout.
// Errors: ErrOptions, ErrSchema, ErrVolatile, those of the server, the context's.
func Open(ctx context.Context, url string, opts Options) (*Journal, error) {
	opts, err := opts.checked()
	if err != nil {
		return nil, err
	}
	d := opts.dialect()
	db, name, err := opts.database(url, opts.CallTimeout/3, &greeting{most: d.most, durable: opts.checks()})
	if err != nil {
		return nil, err
	}
	return opts.open(ctx, db, name, d, opts.check)
}

// config parses the URL of a database. Options.Database goes before the one in the URL. Only the parameter tls is known. Its error does not quote the URL,
// which may hold a password.
func (o Options) config(text string) (*mysql.Config, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "mysql" && u.Scheme != "mariadb" || u.Hostname() == "" {
		return nil, fmt.Errorf("%w: the URL cannot be read (it is not shown, as it may hold a password); want mysql://user:password@host:port/database", ErrOptions)
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Port() == "" {
		c.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	if o.Database != "" {
		c.DBName = o.Database
	}
	if c.DBName == "" {
		return nil, fmt.Errorf("%w: the URL names no database, and Options.Database is empty", ErrOptions)
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	for name, values := range u.Query() {
		if name != "tls" {
			return nil, fmt.Errorf("%w: parameter %q of the URL is not known; want tls, or none", ErrOptions, name)
		}
		c.TLSConfig = values[len(values)-1]
	}
	return c, nil
}

// database makes the pool and the name of the journal. The pool connects when it is used. The server must answer each
// statement within limit; zero is no limit. The driver needs the limit, since its commit ignores the context. first checks new connections; nil: nothing checks
// them, as for a migration.
func (o Options) database(text string, limit time.Duration, first *greeting) (db *sql.DB, name string, err error) {
	c, err := o.config(text)
	if err != nil {
		return nil, "", err
	}
	c.InterpolateParams = true // one round trip
	c.ClientFoundRows = true   // a row set to its old values counts as changed
	c.MaxAllowedPacket = 0     // the server's value
	c.Timeout, c.ReadTimeout, c.WriteTimeout = o.CallTimeout/3, limit, limit
	c.Logger = silent{}
	// With MariaDB's default, REPEATABLE READ, a session would wait for others' ranges, and deadlock with them. The
	// server ends a transaction left open, for example behind a network with dropped packets. And with the server's
	// default autocommit = 0, no write would be committed, though its method has returned.
	idle := max(1, int(o.CallTimeout/3/time.Second))
	c.Params = map[string]string{"autocommit": "1", "tx_isolation": "'READ-COMMITTED'", "idle_transaction_timeout": strconv.Itoa(idle)}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, "", fmt.Errorf("%w: the URL's parameters cannot be used: tls may be true, false, skip-verify or preferred", ErrOptions)
	}
	if first != nil {
		first.Connector = connector
		connector = *first
	}
	db = sql.OpenDB(connector)
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, "mysql " + c.Addr + "/" + c.DBName, nil
}

// silent drops the log output of the driver: each of its errors is returned as well.
type silent struct{}

// Print discards the driver's log lines.
func (silent) Print(...any) {}

// check returns an error if this program cannot work with the tables of the database. Open calls it.
func (o Options) check(ctx context.Context, db *sql.DB) error {
	made, err := o.schema()
	if err != nil {
		return err
	}
	return made.Check(ctx, db)
}

// prefix returns the text before the name of each table: the quoted name of the database and a dot, or nothing.
func (o Options) prefix() string {
	if o.Database == "" {
		return ""
	}
	return "`" + o.Database + "`."
}
