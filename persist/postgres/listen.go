package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/notify"
)

var _ persist.Notifier = (*Journal)(nil)

// deafAdvice is the advice in the error when LISTEN works and nothing arrives.
const deafAdvice = "behind a pooler such as PgBouncer LISTEN hears nothing; set Options.ListenURL to the server itself"

// Notify implements [persist.Notifier]: it wakes the listeners of the journal in other processes, as something may have become due. It sends a NOTIFY of its
// own over one of the journal's connections, and does not block.
func (j *Journal) Notify() {
	if j.wakes != nil {
		j.wakes.Notify()
	}
}

// Listen implements [persist.Notifier]: it calls heard at each notification, with nil, or with an error when it hears nothing any more (it goes on trying),
// until ctx ends. All listeners on this journal share one connection. Options.MaxConns does not count it: see Options.ListenURL.
func (j *Journal) Listen(ctx context.Context, heard func(err error)) error {
	if j.wakes == nil {
		return j.Flush(ctx) // it returns the error of a journal never opened
	}
	return j.wakes.Listen(ctx, heard)
}

// Close implements [persist.Journal]: it sends a waiting notification, ends listening, and closes the journal.
func (j *Journal) Close() error {
	if j.wakes != nil {
		j.wakes.Close()
	}
	return j.Journal.Close()
}

// channel returns the channel of a journal's notifications. Each journal of a database has its own.
func (o Options) channel() string { return o.Schema + "_wake" }

// notification returns the statement that sends a message to all listeners of the journal. The message must need no quoting.
func (o Options) notification(message string) string {
	if message == "" {
		return "NOTIFY " + o.channel()
	}
	return "NOTIFY " + o.channel() + ", '" + message + "'"
}

// Executor is the common method of a *pgxpool.Pool, a *pgx.Conn and a pgx.Tx.
type Executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// ExecutorSQL is the common method of a *sql.DB, a *sql.Conn and a *sql.Tx.
type ExecutorSQL interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Notify wakes Run in every process listening on the journal with these options. It is for programs that begin
// operations in transactions of their own and have no client on the journal; with a client, call Client.Wake. Without
// either, Run finds the operations at its next look. The cost depends on the place of the call:
//
//   - after the commit, with a pool or a connection: one more statement, with no wait for a disk;
//   - in the transaction: nothing more to wait for by itself, and it arrives if and when the transaction commits. But
//     PostgreSQL lets transactions with a NOTIFY commit only one after the other, the flush of the log included. So
//     many writers at once make far fewer commits (docs/journals.md has figures).
//
// Errors: ErrOptions, those of the server; in a transaction it can then only be rolled back.
func (o Options) Notify(ctx context.Context, on Executor) error {
	o, err := o.checked()
	if err == nil {
		_, err = on.Exec(ctx, o.notification(""))
	}
	return err
}

// NotifySQL wakes the listeners of the journal as Notify does, by a connection or a transaction of database/sql.
func (o Options) NotifySQL(ctx context.Context, on ExecutorSQL) error {
	o, err := o.checked()
	if err == nil {
		_, err = on.ExecContext(ctx, o.notification(""))
	}
	return err
}

// wakes returns the journal's notifier. It sends by db, and listens on a connection of its own, made by listen. name is the journal's, for errors.
func (o Options) wakes(db *sql.DB, listen dial, name string) *notify.Hub {
	within := o.CallTimeout / 3
	return notify.New(notify.Config{
		Name: name, Within: within, Advice: deafAdvice,
		Send: func(ctx context.Context, message string) error {
			_, err := db.ExecContext(ctx, o.notification(message))
			return err
		},
		Connect: func(ctx context.Context) (notify.Line, error) {
			conn, err := listen(ctx)
			if err != nil {
				return nil, &connectError{err}
			}
			l := &line{conn: conn, within: within}
			if l.backend, err = l.run(ctx, "LISTEN "+o.channel()); err != nil {
				l.Close()
				return nil, err
			}
			return l, nil
		},
	})
}

// line is a listening connection.
type line struct {
	conn    *pgx.Conn
	within  time.Duration
	backend string // the pid of the listening backend
}

// run runs a statement on the listening connection, and returns the process id of its server process. If that changes from one statement to the next, a pooler
// is between, and the connection no longer listens.
func (l *line) run(ctx context.Context, statement string) (backend string, err error) {
	results, err := l.conn.PgConn().Exec(ctx, statement+"; SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return "", err
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}

// unlistenTries bounds the tries to reach the listening backend through a pooler.
const unlistenTries = 10

// Next implements notify.Line: it waits for the next message.
func (l *line) Next(ctx context.Context) (string, error) {
	n, err := l.conn.WaitForNotification(ctx)
	if err != nil {
		return "", err
	}
	return n.Payload, nil
}

// Close implements notify.Line: it ends the connection that listens for notifications. A pooler (such as PgBouncer) gives its connection to the database
// (backend) to other clients, which would get the notifications. So Close sends UNLISTEN, until one of unlistenTries tries reaches this backend.
func (l *line) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), l.within)
	defer cancel()
	for range unlistenTries {
		if backend, err := l.run(ctx, "UNLISTEN *"); err != nil || backend == l.backend {
			break
		}
	}
	_ = l.conn.Close(ctx)
}
