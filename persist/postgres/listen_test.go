package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// listener is the role of a process that runs a journal: see sqltest.Listener.
func listener(ctx context.Context, args []string) error {
	limit, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	return sqltest.Listener(ctx, args[3], func(ctx context.Context) (persist.Journal, error) {
		return postgres.Open(ctx, args[0], postgres.Options{Schema: args[1], ListenURL: args[2], MaxConns: 4, CallTimeout: limit})
	})
}

// terminate ends the backend that listens.
func terminate(t *testing.T, db *sql.DB, opts postgres.Options) {
	t.Helper()
	pids := listeners(t, db, opts)
	if len(pids) != 1 {
		t.Fatalf("%d backends listen, want one", len(pids))
	}
	if _, err := db.Exec("SELECT pg_terminate_backend($1)", pids[0]); err != nil {
		t.Fatal(err)
	}
}

// TestWoken: what this process enqueues, or commits in a transaction, is sent by another one at once, also when the
// connection that listens was ended, and through PgBouncer.
func TestWoken(t *testing.T) {
	t.Parallel()
	db := admin(t)
	for name, through := range map[string]func(*testing.T) string{"server": func(t *testing.T) string { return server(t) }, "pgbouncer": bouncer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts, at := migrated(t, db), through(t)
			commit := func(rec persist.Record) error {
				tx, err := db.Begin()
				if err == nil {
					_, _, err = opts.BeginSQL(context.Background(), tx, rec)
				}
				if err == nil {
					err = tx.Commit()
				}
				if err == nil {
					err = opts.NotifySQL(context.Background(), db)
				}
				return err
			}
			sqltest.Woken(t, open(t, at, opts), []string{at, opts.Schema, server(t), "1h", "1m"}, commit, func() { terminate(t, db, opts) })
		})
	}
}

// TestPolling: behind PgBouncer, without a URL of its own for what listens, Run says that it hears nothing, and polls.
func TestPolling(t *testing.T) {
	t.Parallel()
	opts, at := migrated(t, admin(t)), bouncer(t)
	sqltest.Polling(t, open(t, at, opts), []string{at, opts.Schema, "", "1s", "9s"}, "behind a pooler such as PgBouncer")
}

// listeners are the backends that listen to a journal.
func listeners(t *testing.T, db *sql.DB, opts postgres.Options) (pids []int) {
	t.Helper()
	rows, err := db.Query("SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN " + opts.Schema + "_wake;%'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// TestListenTerminated: a connection that the server has ended is replaced, which wakes, since something may have been missed.
func TestListenTerminated(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	j, other := open(t, server(t), opts), open(t, server(t), opts)
	heard := sqltest.Listening(t, j)
	sqltest.HeardWake(t, heard, "the beginning")
	for range 3 {
		terminate(t, db, opts)
		sqltest.HeardWake(t, heard, "the end of the connection")
		other.Notify()
		sqltest.HeardWake(t, heard, "a notification on the new one")
	}
}

// TestListenPerJournal: each journal of a database has a channel of its own, and what is sent there says nothing more.
func TestListenPerJournal(t *testing.T) {
	t.Parallel()
	db := admin(t)
	one, two := migrated(t, db), migrated(t, db)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	conn, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, opts := range []postgres.Options{one, two} {
		if _, err := conn.Exec(ctx, "LISTEN "+opts.Schema+"_wake"); err != nil {
			t.Fatal(err)
		}
	}
	for _, opts := range []postgres.Options{two, one} {
		open(t, server(t), opts).Notify()
		if n, err := conn.WaitForNotification(ctx); err != nil || n.Channel != opts.Schema+"_wake" || n.Payload != "" {
			t.Errorf("notification %+v, error %v; want an empty one for %s", n, err, opts.Schema)
		}
	}
}

// TestListenBehindPgBouncer: in transaction mode LISTEN is accepted and hears nothing. That is noticed and said, with what
// to do; and a URL of the server itself helps.
func TestListenBehindPgBouncer(t *testing.T) {
	t.Parallel()
	opts := migrated(t, admin(t))
	through := bouncer(t)
	opts.CallTimeout, opts.LockWait = 9*time.Second, time.Second
	heard := sqltest.Listening(t, open(t, through, opts))
	if err := sqltest.Heard(t, heard, "LISTEN through PgBouncer"); err == nil || !strings.Contains(err.Error(), "does not arrive within 3s") || !strings.Contains(err.Error(), "ListenURL") {
		t.Errorf("heard %v, want that nothing arrives, and what to do", err)
	}
	opts.ListenURL = server(t)
	direct := open(t, through, opts)
	heard = sqltest.Listening(t, direct)
	sqltest.HeardWake(t, heard, "the beginning, by ListenURL")
	direct.Notify()
	sqltest.HeardWake(t, heard, "a notification through PgBouncer")
}

// TestListenLeavesNothing: who has listened through PgBouncer in vain leaves no backend there that listens, for others to
// get what it hears.
func TestListenLeavesNothing(t *testing.T) {
	t.Parallel()
	opts, through := migrated(t, admin(t)), bouncer(t)
	opts.CallTimeout, opts.LockWait = 3*time.Second, 100*time.Millisecond
	j := open(t, through, opts)
	ctx, stop := context.WithCancel(t.Context())
	if err := j.Listen(ctx, func(error) { stop() }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", through)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for range 5 { // at once, so that each has a backend of its own, and all of the pool's are looked at
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		var listens int
		if err := tx.QueryRow("SELECT count(*) FROM pg_listening_channels()").Scan(&listens); err != nil || listens > 0 {
			t.Errorf("a backend listens on %d channels, error %v", listens, err)
		}
	}
}

// TestListenURL: one that cannot be read is refused and not shown; one that leads elsewhere is found out.
func TestListenURL(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	for _, bad := range []string{"postgres://u:hunter2@h:port/d", "postgres://u:hunter2@h/d?sslmode=strange", "hunter2"} {
		opts.ListenURL = bad
		if _, err := postgres.Open(t.Context(), server(t), opts); !errors.Is(err, postgres.ErrOptions) || !strings.Contains(err.Error(), "ListenURL") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open with ListenURL %s: %v, want ErrOptions that names it", bad, err)
		}
	}
	elsewhere := sqltest.Name()
	if _, err := db.Exec("CREATE DATABASE " + elsewhere); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("DROP DATABASE " + elsewhere + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + elsewhere
	opts.ListenURL, opts.CallTimeout, opts.LockWait = u.String(), 3*time.Second, 100*time.Millisecond
	if err := sqltest.Heard(t, sqltest.Listening(t, open(t, server(t), opts)), "LISTEN in another database"); err == nil || !strings.Contains(err.Error(), "does not arrive") {
		t.Errorf("heard %v, want that nothing arrives", err)
	}
}

// TestNotifyInTransaction: a notification in the caller's transaction arrives with its commit, and never after a rollback;
// one after the commit at once.
func TestNotifyInTransaction(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), admin(t)
	opts := migrated(t, db)
	heard := sqltest.Listening(t, open(t, server(t), opts))
	sqltest.HeardWake(t, heard, "the beginning")
	conn, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	silent := func(when string) {
		t.Helper()
		select {
		case err := <-heard:
			t.Errorf("%s: heard %v", when, err)
		default:
		}
	}
	for i, commit := range []bool{false, true} {
		tx, err := conn.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, created, err := opts.Begin(ctx, tx, sqltest.Record("a", string(rune('k'+i)))); err != nil || !created {
			t.Fatalf("Begin: created %t, error %v", created, err)
		}
		if err := opts.Notify(ctx, tx); err != nil {
			t.Fatal(err)
		}
		if commit {
			silent("before the commit")
			err = tx.Commit(ctx)
		} else {
			err = tx.Rollback(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sqltest.HeardWake(t, heard, "the commit")
	if err := opts.Notify(ctx, conn); err != nil {
		t.Fatal(err)
	}
	sqltest.HeardWake(t, heard, "Notify on a connection")
	if err := opts.NotifySQL(ctx, db); err != nil {
		t.Fatal(err)
	}
	sqltest.HeardWake(t, heard, "NotifySQL on a pool")
	silent("in the end")
	wrong := postgres.Options{Schema: "no schema; DROP"}
	if err := wrong.Notify(ctx, conn); !errors.Is(err, postgres.ErrOptions) {
		t.Errorf("Notify with a schema that is none: %v, want ErrOptions", err)
	}
}
