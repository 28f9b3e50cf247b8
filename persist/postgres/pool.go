package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/oncehttp/oncehttp/persist"
)

// OpenPool opens the journal on connections of the program's own pool, which is never closed by the journal: close the
// journal first, and then the pool. It never changes the schema. ctx bounds the opening alone; the opening also ends
// after Options.CallTimeout.
//
// Each try of a call takes one connection from the pool, and gives it back at its end. The journal takes at most
// Options.MaxConns at a time; zero is 16, or as many as the pool has, if these are fewer. If none comes free within a
// third of CallTimeout, the error of the call names the pool's MaxConns. A call of a client waits for a connection:
// so a program that calls it while it holds a connection itself needs a larger pool.
//
// The listening connection (see Options.ListenURL) is not one of the pool, and not counted by its MaxConns. It is made
// with the pool's configuration, and its BeforeConnect.
//
// The settings of the pool's sessions are the program's own, and stay as they are. With synchronous_commit = off, each
// write sets it for its own transaction. A pool of read-only sessions, and a server with fsync = off, are refused,
// here and in each write. If the server refuses the credentials of a new connection, the pool makes it again, up to
// four times, with a new call of its BeforeConnect.
//
// Errors: ErrOptions for no pool, Options.BeforeConnect or a MaxConns larger than the pool's; ErrSchema; ErrVolatile;
// persist.ErrReadOnly; those of the server; the context's.
func OpenPool(ctx context.Context, pool *pgxpool.Pool, opts Options) (*Journal, error) {
	if pool == nil {
		return nil, fmt.Errorf("%w: there is no pool", ErrOptions)
	}
	config := pool.Config()
	most := int(config.MaxConns)
	switch {
	case opts.BeforeConnect != nil:
		return nil, fmt.Errorf("%w: BeforeConnect is for Open: a pool has its own", ErrOptions)
	case opts.MaxConns > most:
		return nil, fmt.Errorf("%w: MaxConns %d: the pool has at most %d connections", ErrOptions, opts.MaxConns, most)
	}
	opts, err := opts.checked()
	if err != nil {
		return nil, err
	}
	listen, err := opts.poolListener(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(poolConnector{connector{
		// A connection is handed on within the journal without a pause: no ping.
		Connector: stdlib.GetPoolConnector(pool, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })),
		again:     config.BeforeConnect != nil, guards: opts.checks(),
	}, pool, opts.CallTimeout / 3})
	db.SetMaxOpenConns(min(opts.MaxConns, most))
	db.SetMaxIdleConns(-1) // the pool keeps them
	return opts.open(ctx, db, opts.name(config.ConnConfig), listen, opts.checkPool)
}

// poolListener returns the function that makes the listening connection of a journal on a pool: with the pool's configuration, or with that of
// ListenURL.
func (o Options) poolListener(config *pgxpool.Config) (dial, error) {
	own := config.ConnConfig.Copy()
	if o.ListenURL != "" {
		var err error
		if own, err = o.connConfig("ListenURL", o.ListenURL); err != nil {
			return nil, err
		}
	}
	own.OnNotification = nil // a handler of the program would take the notifications
	return o.dialer(own, config.BeforeConnect), nil
}

// checkPool makes the checks of OpenPool: the server keeps commits in a crash, takes writes unless the journal is for reading, and has the right tables. A pool
// with synchronous_commit = off is accepted: each write switches it on.
func (o Options) checkPool(ctx context.Context, db *sql.DB) error {
	var fsync, reads string
	err := db.QueryRowContext(ctx, "SELECT current_setting('fsync'), current_setting('transaction_read_only')").Scan(&fsync, &reads)
	switch {
	case err != nil:
		return err
	case o.checks() && fsync == "off":
		return fmt.Errorf("%w: fsync is off; switch it on, or set AllowVolatile", ErrVolatile)
	case !o.ReadOnly && reads != "off":
		return fmt.Errorf("%w: the pool's connections are read-only: default_transaction_read_only is on, or the server is a standby", persist.ErrReadOnly)
	}
	return o.check(ctx, db)
}

// poolConnector takes connections from a pool, and gives them back when they are closed.
type poolConnector struct {
	connector
	pool   *pgxpool.Pool
	within time.Duration // database/sql itself connects without a bound
}

// Connect implements [driver.Connector]: it takes a connection of the pool, within a time limit. The error says so if all of them are in use.
func (c poolConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	made, err := c.connector.Connect(ctx)
	if stat := c.pool.Stat(); err != nil && errors.Is(err, context.DeadlineExceeded) && stat.AcquiredConns() >= stat.MaxConns() {
		return nil, fmt.Errorf("all %d connections of the pool are in use; raise its MaxConns: %w", stat.MaxConns(), err)
	}
	return made, err
}
