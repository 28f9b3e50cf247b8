package place

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// Fault is an error of a journal, or of the client about an operation in it, in words of our own.
type Fault struct{ terminal.SaidError }

// Status returns the exit status for the error: terminal.ExitLocked if another process has the journal's file, terminal.ExitUnknown if the same command may
// do better later, as when a server does not answer, the operation is held, or another process is at it (ErrInFlight, ErrStale), else terminal.ExitUsage: the
// call has to change.
func (e *Fault) Status() int {
	switch {
	case errors.Is(e, persist.ErrLocked):
		return terminal.ExitLocked
	case errors.Is(e, persist.ErrUncertain), errors.Is(e, persist.ErrStale), isOneOf(e, oncehttp.ErrInFlight, oncehttp.ErrHeld, oncehttp.ErrStale), passes(e):
		return terminal.ExitUnknown
	}
	return terminal.ExitUsage
}

// passes reports whether an error of a journal's server is likely to pass: the server does not answer, or not now. Errors about the call, such as a wrong password or a
// missing table, do not.
func passes(err error) bool {
	var pg *pgconn.PgError
	var my *mysqldriver.MySQLError
	var answered goredis.Error
	switch {
	case errors.Is(err, persist.ErrReadOnly): // as of a standby, which may be promoted
		return true
	case errors.As(err, &answered): // also if the server does not tell its settings because it starts
		return !redisOfCall(answered.Error())
	case isOneOf(err, postgres.ErrVolatile, mysql.ErrVolatile, redis.ErrVolatile, postgres.ErrSchema, persist.ErrCorrupt, persist.ErrGone, persist.ErrSealed):
		return false
	case certificateRefused(err): // some drivers wrap it as an error of the network
		return false
	case errors.As(err, &pg):
		return !ofCall(pg.Code)
	case errors.As(err, &my):
		return !slices.Contains(mysqlOfCall(), my.Number) && !ofCall(string(my.SQLState[:])) || slices.Contains(mysqlTooMany(), my.Number)
	}
	return unreachable(err)
}

// RefusesCall reports whether a server has answered with an error about the call, such as a missing right or table.
func RefusesCall(err error) bool {
	answered := errors.As(err, new(*pgconn.PgError)) || errors.As(err, new(*mysqldriver.MySQLError)) || errors.As(err, new(goredis.Error))
	return answered && !passes(err)
}

// unreachable reports whether an error means that the journal's server cannot be reached now: a connection could not be opened, broke, or did not come in time. So does a
// cancelled context: the drivers end an attempt to connect by it at their own time limits.
func unreachable(err error) bool {
	if e := (*oncehttp.Error)(nil); errors.As(err, &e) { // it is a net.Error, whatever its cause
		return slices.ContainsFunc(e.Unwrap(), unreachable)
	}
	var network net.Error
	if errors.As(err, &network) {
		_, isFile := network.(syscall.Errno) // a syscall.Errno is a net.Error, too, also as an error of a file
		return !isFile
	}
	return pgconn.SafeToRetry(err) || isOneOf(err, context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		driver.ErrBadConn, sql.ErrConnDone, mysqldriver.ErrInvalidConn, goredis.ErrPoolTimeout, goredis.ErrClosed)
}

// ofCall reports whether an SQLSTATE shows a mistake in the call: its data, credentials, database, schema, rights or tables, or a feature that the
// server lacks. Any other state may be a failure of the server.
func ofCall(state string) bool {
	return len(state) == 5 && slices.Contains([]string{"0A", "22", "23", "28", "3D", "3F", "42"}, state[:2])
}

// mysqlOfCall returns the errors of MariaDB about a call with a general SQLSTATE. The host may not connect, the variable or the way to
// authenticate does not exist, or the password must be changed.
func mysqlOfCall() []uint16 { return []uint16{1130, 1193, 1524, 1820, 1862} }

// mysqlTooMany returns the errors of MariaDB about too many connections with the SQLSTATE of missing rights.
func mysqlTooMany() []uint16 { return []uint16{1203, 1226} }

// redisOfCall reports whether an error that Redis answered is about the call, such as a wrong password, and not about the state of the server. Of the general
// ERR only the one about too many clients is such a state.
func redisOfCall(text string) bool {
	code, rest, _ := strings.Cut(text, " ")
	if code == "ERR" {
		return !strings.HasPrefix(rest, "max number of clients")
	}
	return slices.Contains([]string{"NOAUTH", "WRONGPASS", "NOPERM", "DENIED", "CROSSSLOT", "WRONGTYPE"}, code)
}

// isOneOf reports whether err matches one of the targets.
func isOneOf(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// NotBegun returns the failure of the journal's server if that kept an operation from being begun, so that nothing was sent; nil for any other error. err is
// that of a call of the client. A call that its caller has ended (Canceled, ErrClosed) is no such failure; one whose write may have come through
// (ErrUncertain) is.
func NotBegun(err error) error {
	var e *oncehttp.Error
	cause := err
	if errors.As(err, &e) {
		cause = e.Cause
	}
	switch {
	case cause == nil, e != nil && e.Attempts > 0, isOneOf(err, context.Canceled, oncehttp.ErrClosed):
		return nil
	case errors.As(cause, new(*pgconn.PgError)), errors.As(cause, new(*mysqldriver.MySQLError)), errors.As(cause, new(goredis.Error)),
		errors.Is(cause, persist.ErrUncertain), unreachable(cause):
		return cause
	}
	return nil
}
