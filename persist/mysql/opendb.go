package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// OpenDB opens the journal on connections of the program's own DB, which is never closed by the journal: close the
// journal first, and then the DB. Its driver has to be github.com/go-sql-driver/mysql, or wrap it. OpenDB never changes
// the schema. ctx bounds the opening alone; the opening also ends after Options.CallTimeout.
//
// Each try of a call takes one connection from the DB, and gives it back at its end. The journal takes at most
// Options.MaxConns at a time; zero is 16, or as many as the DB may open, if these are fewer. If none comes free within
// a third of CallTimeout, the error of the call names SetMaxOpenConns. A call of a client waits for a connection: so a
// program that calls it while it holds a connection itself needs a larger DB.
//
// With each connection, before the first statement, the journal reads the settings of its session and of the server: one
// round trip. A server that may lose commits is refused with ErrVolatile, unless AllowVolatile is set, and so is a
// connection with an open transaction. The journal needs autocommit = 1, the isolation READ COMMITTED, an
// idle_transaction_timeout, and a sql_mode with STRICT_TRANS_TABLES and without modes that change the meaning of
// statements. It sets these for its own use, and sets them back afterwards: two round trips more. With
// tx_isolation='READ-COMMITTED' and idle_transaction_timeout=3 in the DSN, they are not needed. A connection whose
// settings cannot be set back is closed.
//
// Rotated credentials are set by the connector of the DB (mysql.BeforeConnect of the driver). If the server refuses the
// credentials of a new connection, it is made again, up to four times.
//
// Errors: ErrOptions for no DB, a MaxConns larger than the DB's, or a DSN without a database; ErrSchema; ErrVolatile; those of the server; the
// context's.
func OpenDB(ctx context.Context, db *sql.DB, opts Options) (*Journal, error) {
	if db == nil {
		return nil, fmt.Errorf("%w: there is no DB", ErrOptions)
	}
	most := db.Stats().MaxOpenConnections // 0: any number
	if most > 0 && opts.MaxConns > most {
		return nil, fmt.Errorf("%w: MaxConns %d: the DB opens at most %d connections", ErrOptions, opts.MaxConns, most)
	}
	opts, err := opts.checked()
	if err != nil {
		return nil, err
	}
	d := opts.dialect()
	own := sql.OpenDB(&lender{db: db, greeting: greeting{most: d.most, durable: opts.checks()}, limit: opts.CallTimeout / 3})
	if most == 0 || opts.MaxConns < most {
		most = opts.MaxConns
	}
	own.SetMaxOpenConns(most)
	own.SetMaxIdleConns(-1) // the DB keeps them
	name := "mysql of the program's DB"
	if opts.Database != "" {
		name += ", database " + opts.Database
	}
	return opts.open(ctx, own, name, d, opts.checkDB)
}

// checkDB makes the checks of OpenDB: the tables are right, and the connections have a database selected, as some statements of the journal need any
// one. Error: also ErrOptions.
func (o Options) checkDB(ctx context.Context, db *sql.DB) error {
	var selected sql.NullString
	if err := db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&selected); err != nil {
		return err
	}
	if !selected.Valid {
		return fmt.Errorf("%w: the DB's connections have no database selected; name one in its DSN", ErrOptions)
	}
	return o.check(ctx, db)
}

// lender is a driver.Connector. It borrows connections from the program's DB, checks each, and changes settings of its session; they are set back when
// the connection goes back.
type lender struct {
	db       *sql.DB
	greeting greeting
	limit    time.Duration // of setting the settings back, and of a commit
}

// The tries to borrow a connection while the server refuses its credentials, and the pauses between them. A password
// may be rotated between its reading and its use.
const (
	credentialTries = 5
	credentialPause = 50 * time.Millisecond
)

// borrowTries bounds the connections found to be dead when one is borrowed, beyond those that the DB may keep.
const borrowTries = 3

// Connect implements [driver.Connector]: it takes a connection of the program's DB within a time limit. It passes over dead ones, as many as the DB has open
// and a few more (borrowTries), and tries again a few times after refused credentials: while they are changed, the server may not know the new ones yet.
func (l *lender) Connect(ctx context.Context) (driver.Conn, error) {
	// database/sql itself connects without a bound.
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	refused := 0
	for dead := 0; ; {
		made, err := l.borrow(ctx)
		var my *mysql.MySQLError
		switch {
		case err == nil:
			return made, nil
		case ctx.Err() != nil:
			return nil, err
		case errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn):
			if dead++; dead > borrowTries+l.db.Stats().OpenConnections {
				return nil, err
			}
		case errors.As(err, &my) && my.Number == accessDenied:
			if refused++; refused == credentialTries {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(time.Duration(refused) * credentialPause):
			}
		default:
			return nil, err
		}
	}
}

// accessDenied is the server's error number for refused credentials.
const accessDenied = 1045

// Driver implements [driver.Connector]. It returns the driver of the program's own database.
func (l *lender) Driver() driver.Driver { return l.db.Driver() }

// borrow takes a connection from the program's DB, checks its server, and sets its session as the journal needs it. The borrowed connection goes back at its
// Close. Error: also ErrVolatile.
func (l *lender) borrow(ctx context.Context) (*borrowed, error) {
	taken, err := l.db.Conn(ctx)
	if err != nil {
		if stats := l.db.Stats(); ctx.Err() != nil && stats.MaxOpenConnections > 0 && stats.InUse >= stats.MaxOpenConnections {
			err = fmt.Errorf("all %d connections of the DB are in use; raise its SetMaxOpenConns: %w", stats.MaxOpenConnections, err)
		}
		return nil, err
	}
	b := &borrowed{conn: taken, limit: l.limit}
	s, err := l.session(ctx, taken)
	b.most = l.greeting.most.Load()
	if err == nil {
		err = b.prepare(ctx, s)
	}
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// session reads and checks the settings of a connection and its server, and notes the largest packet that the server takes. A connection with an open
// transaction is refused. Error: also ErrVolatile.
func (l *lender) session(ctx context.Context, conn *sql.Conn) (session, error) {
	var server settings
	var s session
	var open, packet int64
	err := conn.QueryRowContext(ctx, readSettings+", "+readSession+", "+readPacket).Scan(append(server.dest(), append(s.dest(), &open, &packet)...)...)
	if err != nil {
		return s, err
	}
	l.greeting.most.Store(packet)
	if open != 0 {
		return s, fmt.Errorf("%w: a connection of the DB has an open transaction, which would hold the journal's writes; end each transaction before its connection is given back", ErrVolatile)
	}
	if l.greeting.durable {
		err = server.check()
	}
	return s, err
}

// checks reports whether a server that may lose acknowledged writes is refused. It is not if the program allows it, nor by a journal that only reads.
func (o Options) checks() bool { return !o.AllowVolatile && !o.ReadOnly }

// open makes the journal on db, once check has accepted the tables. name is its name in errors. Without Options.Database the connections have one selected,
// which a caller's own transaction may not have. It closes db after an error.
func (o Options) open(ctx context.Context, db *sql.DB, name string, d *dialect, check func(context.Context, *sql.DB) error) (*Journal, error) {
	ctx, cancel := context.WithTimeout(ctx, o.CallTimeout)
	defer cancel()
	err := check(ctx, db)
	begins := o // the options for a begin in a caller's transaction, which may use another database: these name the journal's
	if err == nil && o.Database == "" {
		err = db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&begins.Database)
	}
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("journal %s: %w", name, err)
	}
	return &Journal{sqljournal.New(sqljournal.Config{DB: db, Dialect: d, Name: name, Limit: o.CallTimeout, ReadOnly: o.ReadOnly}), begins}, nil
}
