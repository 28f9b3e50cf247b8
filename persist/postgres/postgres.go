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
	// ErrVolatile: the server may lose what it acknowledged, because fsync or
	// synchronous_commit is off.
	ErrVolatile = errors.New("persist/postgres: the server may lose what it has acknowledged")
	// ErrSchema: the database has no tables of a journal, or those of a version that this
	// program must not use. The error says what to do.
	ErrSchema = sqljournal.ErrSchema
	// ErrNotMigrated is an ErrSchema that Migrate ends: there are no tables, or older ones.
	ErrNotMigrated = sqljournal.ErrNotMigrated
	// ErrOptions: an option or the URL cannot be used. The error says which.
	ErrOptions = errors.New("persist/postgres: wrong options")
)

// Options say where the journal is and bound what it does. The zero value is ready.
type Options struct {
	_ struct{}

	// Schema is the schema of the journal's tables: lower-case letters, digits and '_', at
	// most 40. Empty is "oncehttp".
	Schema string
	// MaxConns bounds the connections of this journal, but the one that listens. Zero is 16.
	MaxConns int
	// ListenURL is where the one connection is made that listens for what other processes enqueue, while somebody does
	// (Client.Run; see persist.Notifier). It has to lead to the same database, and not through a pooler in
	// transaction mode such as PgBouncer. The connection tests itself: a message that is sent over the journal's other
	// connections has to arrive within a third of CallTimeout. Empty is the journal's own URL.
	ListenURL string
	// CallTimeout bounds each call of a method, with its wait for a connection and all
	// repetitions of a write in doubt. A third of it bounds one try, and the making of a
	// connection. Zero is 9 seconds.
	CallTimeout time.Duration
	// LockWait bounds how long a statement waits for another transaction, such as one that
	// has begun the same key and is still open. It must be shorter than a third of
	// CallTimeout. Zero is 2 seconds, or a quarter of CallTimeout if that is less.
	LockWait time.Duration
	// AllowVolatile accepts a server that may lose what it acknowledged. Otherwise fsync and
	// synchronous_commit must not be off. Each new connection is looked at, and each Begin in
	// a transaction of the caller's own. With synchronous_commit = local, which is accepted, a
	// commit does not wait for a standby.
	AllowVolatile bool
	// ReadOnly opens the journal to look at it, for a role that may only SELECT, and also on a standby: Get, List, Now and
	// DueTimes are all that works, and anything else is persist.ErrReadOnly. List gives records that no other process has
	// numbered yet Seq 0. What the server may lose does not matter then.
	ReadOnly bool
}

// schemaName is what a schema may be called, so that it needs no quotes.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// checked fills in the defaults. Error: ErrOptions.
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
// [persist.LateFinisher], [persist.Prober], [persist.DueTimes] and [persist.Notifier]. Make one with Open.
//
// A Journal that Open did not return is closed: the methods of a zero one return
// [persist.ErrClosed], those of a nil one panic.
type Journal struct {
	*sqljournal.Journal
	wakes *notify.Hub
}

var (
	_ persist.LateFinisher = (*Journal)(nil)
	_ persist.Prober       = (*Journal)(nil)
)

// FinishesLate implements [persist.LateFinisher].
func (j *Journal) FinishesLate() persist.Journal { return j }

// Open opens the journal at a URL such as postgres://user@host:5432/database, or a
// connection string of key=value pairs. It never changes the schema. ctx bounds the opening
// alone, which also ends after Options.CallTimeout. A server that takes no writes, such as a
// standby, is refused; of several hosts in the URL one that takes them is used.
// Errors: ErrOptions, ErrSchema, ErrVolatile, persist.ErrReadOnly for a server that takes no writes, those of the server, the
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
	db, name, err := opts.database(url, !opts.AllowVolatile && !opts.ReadOnly)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, opts.CallTimeout)
	defer cancel()
	if err := opts.check(ctx, db); err != nil {
		_ = db.Close()
		if errors.Is(err, pgconn.ErrReadOnlyConnection) {
			err = fmt.Errorf("%w: %w", persist.ErrReadOnly, err)
		}
		return nil, fmt.Errorf("journal %s: %w", name, err)
	}
	j := sqljournal.New(sqljournal.Config{DB: db, Dialect: opts.dialect(), Name: name, Limit: opts.CallTimeout, ReadOnly: opts.ReadOnly})
	return &Journal{j, opts.wakes(db, listen, name)}, nil
}

// connConfig reads a URL. what is how the error calls it. Error: ErrOptions.
func (o Options) connConfig(what, url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		// The error quotes the URL, and may quote its password.
		return nil, fmt.Errorf("%w: %s cannot be read (it is not shown, as it may hold a password); want postgres://user@host:port/database", ErrOptions, what)
	}
	config.ConnectTimeout = o.CallTimeout / 3
	return config, nil
}

// listenConfig is how the connection that listens is made.
func (o Options) listenConfig(url string) (*pgx.ConnConfig, error) {
	if o.ListenURL != "" {
		return o.connConfig("ListenURL", o.ListenURL)
	}
	return o.connConfig("the URL", url)
}

// database makes the pool, which connects when it is used, and the name of the journal. Where
// durable is set, a connection to a server that may lose what it acknowledged is ErrVolatile.
func (o Options) database(url string, durable bool) (db *sql.DB, name string, err error) {
	config, err := o.connConfig("the URL", url)
	if err != nil {
		return nil, "", err
	}
	// Parameters are described once per connection and statement, without a name on the
	// server, so that each statement is one round trip, through PgBouncer as well.
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	// A standby has old records, or none: of several hosts the one that takes writes is used.
	if config.ValidateConnect == nil && !o.ReadOnly {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	// A pooler may pass on what is meant for whoever listens through it; the driver would keep it for ever.
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	// By its default the driver asks a connection that was idle for more than a second whether
	// it is alive: a statement that goes out on a dead one would be in doubt.
	greet := func(context.Context, *pgx.Conn) error { return nil }
	if durable {
		greet = greeting
	}
	db = sql.OpenDB(connector{stdlib.GetConnector(*config, stdlib.OptionAfterConnect(greet))})
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, fmt.Sprintf("postgres %s:%d/%s schema %s", config.Host, config.Port, config.Database, o.Schema), nil
}

// check asks the server what Open must know.
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

// mayWrite asks whether the role may call the schema's function. Without it each write would fail once, and then be made
// alone, six times slower, and nobody would be told. Error: ErrSchema.
func (o Options) mayWrite(ctx context.Context, db *sql.DB) error {
	function := o.Schema + ".write_records(text, bytea[], bigint[], bytea[], bigint[])"
	var may sql.NullBool
	err := db.QueryRowContext(ctx, "SELECT has_function_privilege(to_regprocedure($1), 'EXECUTE')", function).Scan(&may)
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

// greeting looks at the server's settings before a new connection is used, so that a server that
// was started anew with others, or a standby that took over, is noticed. It closes a connection
// that it refuses, since the driver does not. Error: also ErrVolatile.
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

// durable refuses settings with which a crash of the server loses commits. Error: ErrVolatile.
func durable(fsync, sync string) error {
	if fsync != "off" && sync != "off" {
		return nil
	}
	return fmt.Errorf("%w: fsync is %s and synchronous_commit is %s; switch both on, or set AllowVolatile", ErrVolatile, fsync, sync)
}
