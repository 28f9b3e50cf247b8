package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/notify"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// The defaults of Options.
const (
	defaultSchema      = "oncehttp"
	defaultMaxConns    = 16
	defaultCallTimeout = 9 * time.Second
	defaultLockWait    = 2 * time.Second
)

var (
	// ErrVolatile: the server may lose acknowledged writes, because fsync or synchronous_commit is off.
	ErrVolatile = errors.New("persist/postgres: the server may lose what it has acknowledged")
	// ErrSchema: the database has no tables of a journal, or those of a version not allowed for this program. The
	// error text names the remedy.
	ErrSchema = sqljournal.ErrSchema
	// ErrNotMigrated is an ErrSchema with Migrate as the remedy: there are no tables, or older ones.
	ErrNotMigrated = sqljournal.ErrNotMigrated
	// ErrOptions: an option or the URL cannot be used. The error text names it.
	ErrOptions = errors.New("persist/postgres: wrong options")
)

// Options describe the place of the journal and the bounds of its work. The zero value is ready.
type Options struct {
	_ struct{}

	// Schema is the schema of the journal's tables: lower-case letters, digits and '_', at
	// most 40. Empty is "oncehttp".
	Schema string
	// MaxConns bounds the connections of this journal, except the listening one. Zero is 16.
	MaxConns int
	// ListenURL is the URL of the listening connection. The journal has one such connection, for operations enqueued
	// by other processes, while somebody listens (Client.Run; see persist.Notifier). ListenURL has to lead to the same
	// database, and not through a pooler in transaction mode such as PgBouncer. The connection tests itself: a message
	// sent over the journal's other connections has to arrive within a third of CallTimeout. Empty is the journal's
	// own URL.
	ListenURL string
	// CallTimeout bounds each call of a method, with its wait for a connection and all
	// repetitions of a write in doubt. A third of it bounds one try, and the making of a
	// connection. Zero is 9 seconds.
	CallTimeout time.Duration
	// LockWait bounds the wait of a statement for another transaction, such as an open one with a Begin of the same
	// key. It must be shorter than a third of CallTimeout. Zero is 2 seconds, or a quarter of CallTimeout if that is
	// less.
	LockWait time.Duration
	// AllowVolatile accepts a server that may lose acknowledged writes. Otherwise fsync and synchronous_commit must
	// not be off. Each new connection is checked, and so is each Begin in a transaction of the caller's own. Each write
	// sets synchronous_commit for its transaction if it is off, and is refused if fsync is off. The value
	// synchronous_commit = local is accepted; a commit then does not wait for a standby.
	AllowVolatile bool
	// BeforeConnect is called before each new connection of the journal, the listening one included, and may change
	// the configuration of that connection: a rotated password, a token, a short-lived certificate. It gets a copy, and
	// may set its fields. Its error is that of the connection. It is called by several goroutines at once, with the
	// context of the connection, which ends after a third of CallTimeout. If the server refuses its credentials,
	// BeforeConnect is called again, up to four times. Nil changes nothing. Not with OpenPool: a pool has its own.
	BeforeConnect func(ctx context.Context, config *pgx.ConnConfig) error
	// ReadOnly opens the journal for reading, for a role with no right but SELECT, and also on a standby. Only Get,
	// List, Now and DueTimes work, and anything else is persist.ErrReadOnly. List gives Seq 0 to records not numbered
	// yet by another process. The check for AllowVolatile is not made then.
	ReadOnly bool
}

// schemaName matches the allowed names of a schema. They need no quotes.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// checked returns the options with the defaults filled in.
// Error: ErrOptions for an invalid one.
func (o Options) checked() (Options, error) {
	if o.Schema == "" {
		o.Schema = defaultSchema
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultMaxConns
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = defaultCallTimeout
	}
	if o.LockWait == 0 {
		o.LockWait = min(defaultLockWait, o.CallTimeout/4)
	}
	switch {
	case !schemaName.MatchString(o.Schema):
		return o, fmt.Errorf("%w: Schema %q: want lower-case letters, digits and '_', at most 40", ErrOptions, o.Schema)
	case o.MaxConns < 1:
		return o, fmt.Errorf("%w: MaxConns %d: want at least 1", ErrOptions, o.MaxConns)
	case o.CallTimeout < 0 || o.LockWait < time.Millisecond || o.LockWait >= o.CallTimeout/3:
		return o, fmt.Errorf("%w: LockWait %v must be at least 1ms and shorter than a third of CallTimeout %v", ErrOptions, o.LockWait, o.CallTimeout)
	}
	return o, nil
}

// Journal is a journal on PostgreSQL. It implements [persist.Journal], [persist.SendClaimer],
// [persist.LateFinisher], [persist.Prober], [persist.DueTimes], [persist.SharedResults], [persist.Notifier] and
// [persist.TxBeginner]. Make one with Open.
//
// A Journal not returned by Open is closed: the methods of a zero one return [persist.ErrClosed], those of a nil one
// panic.
type Journal struct {
	*sqljournal.Journal
	wakes *notify.Hub
	opts  Options // checked
	place *place
}

var (
	_ persist.LateFinisher  = (*Journal)(nil)
	_ persist.Prober        = (*Journal)(nil)
	_ persist.SharedResults = (*Journal)(nil)
	_ persist.TxBeginner    = (*Journal)(nil)
)

// FinishesLate implements [persist.LateFinisher]: it returns the journal itself.
func (j *Journal) FinishesLate() persist.Journal { return j }

// Open opens the journal at a URL such as postgres://user@host:5432/database, or a connection string of key=value
// pairs. It never changes the schema. ctx bounds the opening alone; the opening also ends after Options.CallTimeout.
// A read-only server, such as a standby, is refused; of several hosts in the URL, a writable one is used.
// Errors: ErrOptions, ErrSchema, ErrVolatile, persist.ErrReadOnly for a read-only server, those of the server, the
// context's.
func Open(ctx context.Context, url string, opts Options) (*Journal, error) {
	opts, err := opts.checked()
	if err != nil {
		return nil, err
	}
	listen, err := opts.listenConfig(url)
	if err != nil {
		return nil, err
	}
	db, name, err := opts.database(url, opts.checks())
	if err != nil {
		return nil, err
	}
	return opts.open(ctx, db, name, opts.dialer(listen, opts.BeforeConnect), opts.check)
}

// open returns the journal on db, once check has accepted the database. It closes db after an error. listen makes connections for notifications. name is the
// journal's, for errors.
func (o Options) open(ctx context.Context, db *sql.DB, name string, listen dial, check func(context.Context, *sql.DB) error) (*Journal, error) {
	ctx, cancel := context.WithTimeout(ctx, o.CallTimeout)
	defer cancel()
	at := &place{db: db, opts: o}
	err := check(ctx, db)
	if err == nil && !o.ReadOnly { // a place is for begins in a caller's transaction
		err = at.look(ctx)
	}
	if err != nil {
		_ = db.Close()
		if errors.Is(err, pgconn.ErrReadOnlyConnection) {
			err = fmt.Errorf("%w: %w", persist.ErrReadOnly, err)
		}
		return nil, fmt.Errorf("journal %s: %w", name, err)
	}
	j := sqljournal.New(sqljournal.Config{DB: db, Dialect: o.dialect(), Name: name, Limit: o.CallTimeout, ReadOnly: o.ReadOnly})
	return &Journal{j, o.wakes(db, listen, name), o, at}, nil
}

// checks reports whether a server that may lose acknowledged writes is refused. It is not if the program allows it, nor by a journal that only reads.
func (o Options) checks() bool { return !o.AllowVolatile && !o.ReadOnly }

// connConfig parses a URL of a database. The parameter what names the URL in the error, which does not quote it.
// Error: ErrOptions.
func (o Options) connConfig(what, url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		// The error quotes the URL, and may quote its password.
		return nil, fmt.Errorf("%w: %s cannot be read (it is not shown, as it may hold a password); want postgres://user@host:port/database", ErrOptions, what)
	}
	config.ConnectTimeout = o.CallTimeout / 3
	return config, nil
}

// listenConfig returns the configuration of the connection for notifications: that of ListenURL, or else that of the journal's own URL.
func (o Options) listenConfig(url string) (*pgx.ConnConfig, error) {
	if o.ListenURL != "" {
		return o.connConfig("ListenURL", o.ListenURL)
	}
	return o.connConfig("the URL", url)
}

// database makes the pool and the name of the journal. The pool connects when it is used. If durable is set, a connection to a server that may lose
// acknowledged writes is refused with ErrVolatile.
func (o Options) database(url string, durable bool) (db *sql.DB, name string, err error) {
	config, err := o.connConfig("the URL", url)
	if err != nil {
		return nil, "", err
	}
	// Parameters are described once per connection and statement, without a name on the server. So each statement is
	// one round trip, through PgBouncer as well.
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	// A standby has old records, or none: of several hosts, a writable one is used.
	if config.ValidateConnect == nil && !o.ReadOnly {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	// A pooler may pass on notifications meant for other listeners; the driver would keep them for ever.
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	// By default, the driver pings a connection after more than a second of idleness: a statement sent on a dead
	// connection would be in doubt.
	greet := func(context.Context, *pgx.Conn) error { return nil }
	if durable {
		greet = greeting
	}
	made := []stdlib.OptionOpenDB{stdlib.OptionAfterConnect(greet)}
	if o.BeforeConnect != nil {
		made = append(made, stdlib.OptionBeforeConnect(o.BeforeConnect))
	}
	db = sql.OpenDB(connector{Connector: stdlib.GetConnector(*config, made...), again: o.BeforeConnect != nil, guards: o.checks()})
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, o.name(config), nil
}

// name returns the name of the journal at a server, without credentials.
func (o Options) name(config *pgx.ConnConfig) string {
	return fmt.Sprintf("postgres %s:%d/%s schema %s", config.Host, config.Port, config.Database, o.Schema)
}

// check makes the checks of Open: the tables have the right version, and, unless ReadOnly is set, the role has the right to write.
func (o Options) check(ctx context.Context, db *sql.DB) error {
	made, err := o.schema()
	if err == nil {
		err = made.Check(ctx, db)
	}
	if err != nil || o.ReadOnly {
		return err
	}
	return o.mayWrite(ctx, db)
}

// mayWrite returns an error unless the role may call the schema's function, which writes several records by one statement. Without this right, each write would
// fail once, and then be made alone, six times slower, and nobody would be told. Error: ErrSchema.
func (o Options) mayWrite(ctx context.Context, db *sql.DB) error {
	function := o.Schema + ".write_records(text, bytea[], bigint[], bytea[], bigint[])"
	var may sql.NullBool
	err := db.QueryRowContext(ctx, "SELECT pg_catalog.has_function_privilege(pg_catalog.to_regprocedure($1), 'EXECUTE')", function).Scan(&may)
	switch {
	case err != nil:
		return err
	case !may.Valid:
		return fmt.Errorf("%w: the function %s is not there; make it as `oncehttp journal migrate --print` has it", ErrSchema, function)
	case !may.Bool:
		return fmt.Errorf("%w: this role may not call its function; GRANT EXECUTE ON FUNCTION %s TO the role", ErrSchema, function)
	}
	return nil
}

// greeting checks the server's settings before a new connection is used. Each new connection is checked: so it detects a server restarted with other settings,
// and a takeover by a standby. It closes a refused connection, since the driver does not.
// Error: also ErrVolatile.
func greeting(ctx context.Context, conn *pgx.Conn) error {
	var fsync, sync string
	err := conn.QueryRow(ctx, "SELECT current_setting('fsync'), current_setting('synchronous_commit')").Scan(&fsync, &sync)
	if err == nil {
		err = durable(fsync, sync)
	}
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	return nil
}

// durable returns ErrVolatile if the server's settings allow it to lose commits in a crash.
func durable(fsync, sync string) error {
	if fsync != "off" && sync != "off" {
		return nil
	}
	return fmt.Errorf("%w: fsync is %s and synchronous_commit is %s; switch both on, or set AllowVolatile", ErrVolatile, fsync, sync)
}
