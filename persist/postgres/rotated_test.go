package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// passwords starts a server of the test's own that asks every role but postgres for its password.
func passwords(t *testing.T) (db *sql.DB, own *sqltest.OwnServer) {
	t.Helper()
	own = ownServer(t)
	db, err := sql.Open("pgx", "postgres://postgres@"+own.Address+"/postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	hba := "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(own.Dir, "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, db, "SELECT pg_reload_conf()", "CREATE ROLE shop LOGIN PASSWORD 'first'")
	return db, own
}

// secret is the role's current password, as a store of secrets has it.
type secret struct {
	db    *sql.DB
	value atomic.Value // string
}

// beforeConnect sets the current password.
func (s *secret) beforeConnect(_ context.Context, config *pgx.ConnConfig) error {
	config.Password = s.value.Load().(string)
	return nil
}

// rotate revokes the old password before the new one is in the store, and ends all sessions of the role.
func (s *secret) rotate(t *testing.T, password string) {
	t.Helper()
	run(t, s.db, "ALTER ROLE shop PASSWORD '"+password+"'")
	s.value.Store(password)
	var now time.Time
	if err := s.db.QueryRow("SELECT now()").Scan(&now); err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0; {
		if err := s.db.QueryRow("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'shop' AND backend_start < $1", now).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRotated rotates the password of the journal's role while a client works: with Open and with a pool of the program's own.
func TestRotated(t *testing.T) {
	t.Parallel()
	db, own := passwords(t)
	for name, opened := range map[string]func(t *testing.T, s *secret, opts postgres.Options) *postgres.Journal{
		"Open": func(t *testing.T, s *secret, opts postgres.Options) *postgres.Journal {
			opts.BeforeConnect = s.beforeConnect
			return open(t, "postgres://shop:stale@"+own.Address+"/postgres", opts)
		},
		"OpenPool": func(t *testing.T, s *secret, opts postgres.Options) *postgres.Journal {
			pool := ownPool(t, "postgres://shop:stale@"+own.Address+"/postgres", func(c *pgxpool.Config) { c.BeforeConnect = s.beforeConnect })
			return openPool(t, pool, opts)
		},
	} {
		t.Run(name, func(t *testing.T) {
			opts := postgres.Options{Schema: strings.ToLower(name), MaxConns: 4}
			if err := postgres.Migrate(t.Context(), "postgres://postgres@"+own.Address+"/postgres", opts); err != nil {
				t.Fatal(err)
			}
			run(t, db, "GRANT ALL ON SCHEMA "+opts.Schema+" TO shop", "GRANT ALL ON ALL TABLES IN SCHEMA "+opts.Schema+" TO shop", "GRANT ALL ON ALL SEQUENCES IN SCHEMA "+opts.Schema+" TO shop")
			s := &secret{db: db}
			s.rotate(t, "of the start")
			j := opened(t, s, opts)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			heard := make(chan error, 100)
			go func() { _ = j.Listen(ctx, func(err error) { heard <- err }) }()
			sqltest.Rotated(t, j, func(n int) { s.rotate(t, string(rune('a'+n))) })
			listensAgain(t, j, heard)
		})
	}
}

// listensAgain waits until a notification is heard without an error.
func listensAgain(t *testing.T, j *postgres.Journal, heard chan error) {
	t.Helper()
	var last error
	for len(heard) > 0 {
		<-heard
	}
	for start := time.Now(); time.Since(start) < 20*time.Second; {
		j.Notify()
		select {
		case last = <-heard:
			if last == nil {
				return
			}
		case <-time.After(time.Second):
		}
	}
	t.Errorf("after the rotations nothing is heard: %v", last)
}

// TestStalePassword: without BeforeConnect, the new password is not known, and an error of BeforeConnect is that of the connection.
func TestStalePassword(t *testing.T) {
	t.Parallel()
	_, own := passwords(t)
	at := (&url.URL{Scheme: "postgres", User: url.UserPassword("shop", "stale"), Host: own.Address, Path: "/postgres"}).String()
	tries, none := 0, errors.New("no lease")
	opts := postgres.Options{CallTimeout: 6 * time.Second}
	if _, err := postgres.Open(t.Context(), at, opts); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("Open with a stale password: %v", err)
	}
	opts.BeforeConnect = func(_ context.Context, config *pgx.ConnConfig) error {
		if tries++; tries == 3 {
			config.Password = "first"
		}
		return nil
	}
	// The third password is right: the server answers about the schema.
	if _, err := postgres.Open(t.Context(), at, opts); tries != 3 || !errors.Is(err, postgres.ErrNotMigrated) {
		t.Errorf("Open with the right password at the third try: %d tries, %v", tries, err)
	}
	opts.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return none }
	if _, err := postgres.Open(t.Context(), at, opts); !errors.Is(err, none) {
		t.Errorf("Open with an error of BeforeConnect: %v", err)
	}
	if err := postgres.Migrate(t.Context(), at, opts); !errors.Is(err, none) {
		t.Errorf("Migrate with an error of BeforeConnect: %v", err)
	}
	if j, err := postgres.Open(t.Context(), at, opts); err == nil || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Open: %v, %v", j, err)
	}
}
