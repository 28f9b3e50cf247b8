package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// ownPool is a pool of the program's own, with a change of its configuration, which is closed in the end.
func ownPool(t testing.TB, url string, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 6
	if change != nil {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// openPool opens a journal on a pool, which is closed in the end.
func openPool(t testing.TB, pool *pgxpool.Pool, opts postgres.Options) *postgres.Journal {
	t.Helper()
	j, err := postgres.OpenPool(t.Context(), pool, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// sets is an AfterConnect that sets something for the whole session.
func sets(statement string) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statement)
		return err
	}
}

// TestPoolSuite runs the suite on a pool in whose sessions commits are not synced. A trigger notes how each transaction that writes to the
// journal is committed.
func TestPoolSuite(t *testing.T) {
	t.Parallel()
	poolSuite(t, sqltest.Half(persisttest.Names(), 1), func(c *pgxpool.Config) {
		c.AfterConnect = sets("SET synchronous_commit = off")
	})
}

// TestPoolModes runs some cases in the other modes in which a pool may send its statements, and at another isolation.
func TestPoolModes(t *testing.T) {
	t.Parallel()
	for n, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			poolSuite(t, sqltest.Part(persisttest.Names(), n%2, 8), func(c *pgxpool.Config) {
				c.ConnConfig.DefaultQueryExecMode = mode
				c.AfterConnect = sets("SET synchronous_commit = off; SET default_transaction_isolation = 'repeatable read'")
			})
		})
	}
}

func poolSuite(t *testing.T, cases []string, change func(*pgxpool.Config)) {
	url, db := server(t), admin(t)
	pool := ownPool(t, url, func(c *pgxpool.Config) {
		change(c)
		c.MaxConns = 12
	})
	seen := sqltest.Name()
	run(t, db, "CREATE TABLE "+seen+" (sync text, op text)")
	t.Cleanup(func() { run(t, db, "DROP TABLE "+seen+" CASCADE", "DROP FUNCTION "+seen) })
	run(t, db, "CREATE FUNCTION "+seen+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public."+seen+" VALUES (current_setting('synchronous_commit'), TG_OP); RETURN NULL; END $$")
	persisttest.Run(t, persisttest.Harness{
		Durable: true, Cases: cases,
		New: func(string) (func() (persist.Journal, error), error) {
			opts := schema(t, db)
			if err := postgres.Migrate(context.Background(), url, opts); err != nil {
				return nil, err
			}
			for _, table := range []string{"record", "fact"} { // deferred: it runs at the commit
				run(t, db, "CREATE CONSTRAINT TRIGGER seen AFTER INSERT OR UPDATE OR DELETE ON "+opts.Schema+"."+table+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "+seen+"()")
			}
			return func() (persist.Journal, error) {
				j, err := postgres.OpenPool(context.Background(), pool, opts)
				if err != nil {
					return nil, err
				}
				return j, nil
			}, nil
		},
	})
	t.Cleanup(func() {
		var all, lost int
		if err := db.QueryRow("SELECT count(*), count(*) FILTER (WHERE sync = 'off') FROM "+seen).Scan(&all, &lost); err != nil || all == 0 || lost > 0 {
			t.Errorf("%d of %d writes were committed with synchronous_commit off, error %v", lost, all, err)
		}
		unchanged(t, pool, "synchronous_commit", "off")
	})
}

// run runs statements.
func run(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// unchanged checks that all connections of a pool are free, and that each has the program's setting.
func unchanged(t *testing.T, pool *pgxpool.Pool, setting, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		var is string
		if err := conn.QueryRow(ctx, "SHOW "+setting).Scan(&is); err != nil || is != want {
			t.Errorf("%s in the pool is %q, want %q; %v", setting, is, want, err)
		}
	}
}

// TestPoolIsTheProgramsOwn: the pool goes on after the journal's Close; the journal holds no connection of the pool between
// its calls, nor while somebody listens.
func TestPoolIsTheProgramsOwn(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	opts.MaxConns = 0
	var connected atomic.Int32
	pool := ownPool(t, server(t), func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
			connected.Add(1)
			return nil
		}
	})
	j := openPool(t, pool, opts)
	heard := make(chan error, 10)
	ctx, cancel := context.WithCancel(t.Context())
	listens := make(chan error, 1)
	go func() { listens <- j.Listen(ctx, func(err error) { heard <- err }) }()
	if err := <-heard; err != nil { // it begins to listen
		t.Fatalf("Listen: %v", err)
	}
	if n := connected.Load(); n != 2 {
		t.Errorf("BeforeConnect was called %d times, want 2: for the pool's connection and the listening one", n)
	}
	if _, created, err := j.Begin(t.Context(), sqltest.Record("a", "k")); err != nil || !created {
		t.Fatalf("Begin: %t, %v", created, err)
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("the journal holds %d connections between its calls", n)
	}
	cancel()
	<-listens
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Get(t.Context(), persist.ID{Account: "a", Key: "k"}); !errors.Is(err, persist.ErrClosed) {
		t.Errorf("Get after Close: %v", err)
	}
	unchanged(t, pool, "synchronous_commit", "on")
}

// TestPoolTooSmall: a call that gets no connection says why, in one line.
func TestPoolTooSmall(t *testing.T) {
	t.Parallel()
	opts := migrated(t, admin(t))
	opts.MaxConns, opts.CallTimeout = 0, 9*time.Second
	pool := ownPool(t, server(t), func(c *pgxpool.Config) { c.MaxConns = 2 })
	j := openPool(t, pool, opts)
	for range 2 {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	_, created, err := j.Begin(t.Context(), sqltest.Record("a", "k"))
	if created || errors.Is(err, persist.ErrUncertain) {
		t.Fatalf("Begin without a connection: created %t, %v", created, err)
	}
	oneLine(t, "Begin without a connection", err, "all 2 connections of the pool are in use; raise its MaxConns")
}

// TestPoolRefused: settings that contradict what the journal promises are refused in one line.
func TestPoolRefused(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	pool := ownPool(t, server(t), nil)
	refused := func(name string, pool *pgxpool.Pool, opts postgres.Options, kind error, says string) {
		t.Helper()
		_, err := postgres.OpenPool(t.Context(), pool, opts)
		if !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", name, err, kind)
		}
		oneLine(t, name, err, says)
	}
	refused("no pool", nil, opts, postgres.ErrOptions, "no pool")
	large := opts
	large.MaxConns = 7
	refused("MaxConns", pool, large, postgres.ErrOptions, "the pool has at most 6 connections")
	both := opts
	both.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return nil }
	refused("BeforeConnect", pool, both, postgres.ErrOptions, "a pool has its own")
	refused("Schema", pool, postgres.Options{Schema: "no-name"}, postgres.ErrOptions, "Schema")

	var reads atomic.Bool
	reads.Store(true)
	changing := ownPool(t, server(t), func(c *pgxpool.Config) {
		c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
			_, err := conn.Exec(ctx, map[bool]string{true: "SET default_transaction_read_only = on", false: "SET default_transaction_read_only = off"}[reads.Load()])
			return err == nil, err
		}
	})
	refused("read-only sessions", changing, opts, persist.ErrReadOnly, "default_transaction_read_only is on")
	reads.Store(false)
	j := openPool(t, changing, opts)
	reads.Store(true)
	_, created, err := j.Begin(t.Context(), sqltest.Record("a", "k"))
	if created || !errors.Is(err, persist.ErrReadOnly) || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin in a read-only session: created %t, %v", created, err)
	}
	oneLine(t, "Begin in a read-only session", err, "default_transaction_read_only is on")
	reads.Store(false)
	if _, err := j.Get(t.Context(), persist.ID{Account: "a", Key: "k"}); !errors.Is(err, persist.ErrNotFound) {
		t.Errorf("Get of what was refused: %v", err)
	}
}

// TestPoolSettingsLater: a session whose synchronous_commit is switched off after the journal was opened commits each write as before. A
// stronger setting stays.
func TestPoolSettingsLater(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	opts.MaxConns = 0
	run(t, db, "CREATE TABLE "+opts.Schema+".seen (sync text)",
		"CREATE FUNCTION "+opts.Schema+".seen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO "+opts.Schema+".seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$",
		"CREATE CONSTRAINT TRIGGER seen AFTER INSERT OR UPDATE OR DELETE ON "+opts.Schema+".record DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "+opts.Schema+".seen()")
	pool := ownPool(t, server(t), func(c *pgxpool.Config) { c.MaxConns = 1 })
	j := openPool(t, pool, opts)
	for i, sync := range []string{"off", "local", "remote_apply"} {
		run(t, db, "TRUNCATE "+opts.Schema+".seen")
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "SET synchronous_commit = "+sync); err != nil {
			t.Fatal(err)
		}
		conn.Release()
		rec, _, err := j.Begin(t.Context(), sqltest.Record("a", sync))
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Forget(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		var got []string
		rows, err := db.Query("SELECT DISTINCT sync FROM " + opts.Schema + ".seen")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				t.Fatal(err)
			}
			got = append(got, s)
		}
		if want := []string{"on", "local", "remote_apply"}[i]; !slices.Equal(got, []string{want}) {
			t.Errorf("in a session with synchronous_commit %s: committed with %q, want %q alone", sync, got, want)
		}
	}
}
