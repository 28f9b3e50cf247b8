package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// connector makes connections with errors of one line, without repetitions. The driver tries an address with TLS and
// without. Each try has a line of its own in the error; mostly the lines are the same.
type connector struct {
	driver.Connector
	again  bool // the credentials may be others the next time
	guards bool // see conn
}

// Connect implements [driver.Connector]. With guards the connection checks the server's settings with each write. again: new credentials are set for each
// connection, so a refusal is tried again.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := withCredentials(ctx, c.again, c.Connector.Connect)
	if err != nil {
		return nil, &connectError{err}
	}
	return &conn{Conn: made.(*stdlib.Conn), guards: c.guards}, nil
}

// The tries to connect while the server refuses the credentials, and the pauses between them. A password may be rotated
// between its reading and its use, and the sessions of its role may be ended meanwhile.
const (
	credentialTries = 5
	credentialPause = 50 * time.Millisecond
)

// withCredentials connects by connect. If again is set (the program sets fresh credentials for each try), it connects a few times more after refused
// credentials: while they are changed, the server may not know the new ones yet.
func withCredentials[T any](ctx context.Context, again bool, connect func(context.Context) (T, error)) (made T, err error) {
	for try := 1; ; try++ {
		made, err = connect(ctx)
		if err == nil || !again || try == credentialTries || !duringRotation(err) {
			return made, err
		}
		select {
		case <-ctx.Done():
			return made, err
		case <-time.After(time.Duration(try) * credentialPause):
		}
	}
}

// duringRotation reports whether a server has refused the name or the password of a connection, or ended its session: what happens while credentials are
// exchanged.
func duringRotation(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == invalidAuthorization || pg.Code == invalidPassword || pg.Code == adminShutdown)
}

// The SQLSTATE codes for duringRotation.
const (
	invalidAuthorization = "28000"
	invalidPassword      = "28P01"
	adminShutdown        = "57P01"
)

// dial makes a connection for listening.
type dial func(ctx context.Context) (*pgx.Conn, error)

// dialer returns a function that makes connections with this configuration. before, unless it is nil, may change the configuration first: it sets fresh
// credentials. Only then is a refusal of them tried again.
func (o Options) dialer(config *pgx.ConnConfig, before func(context.Context, *pgx.ConnConfig) error) dial {
	connect := func(ctx context.Context) (*pgx.Conn, error) {
		own := config.Copy()
		if before != nil {
			if err := before(ctx, own); err != nil {
				return nil, err
			}
		}
		return pgx.ConnectConfig(ctx, own)
	}
	return func(ctx context.Context) (*pgx.Conn, error) { return withCredentials(ctx, before != nil, connect) }
}

// connectError is the error of a failed connection.
type connectError struct{ err error }

// Unwrap returns the error of the driver.
func (e *connectError) Unwrap() error { return e.err }

// Error returns the lines of the driver's error in one line, each once: for several hosts or addresses it repeats them.
func (e *connectError) Error() string {
	var said []string
	for line := range strings.Lines(e.err.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	text := strings.Join(said, "; ")
	return strings.Replace(text, ":; ", ": ", 1) // behind the driver's own first line
}
