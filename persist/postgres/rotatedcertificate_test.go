package postgres_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// certificates is a server of the test's own that asks the role shop for a certificate, and knows which of them are revoked.
type certificates struct {
	*sqltest.Authority
	own     *sqltest.OwnServer
	db      *sql.DB
	current atomic.Pointer[tls.Certificate] // of the role, as a store of secrets has it
}

// startCertificates starts the server.
func startCertificates(t *testing.T) *certificates {
	t.Helper()
	s := &certificates{Authority: sqltest.NewAuthority(t), own: ownServer(t)}
	db, err := sql.Open("pgx", s.admin())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s.db = db
	s.WriteServer(s.own.Dir)
	s.WriteRevoked(s.own.Dir)
	hba := "host all postgres 127.0.0.1/32 trust\nhostssl all shop 127.0.0.1/32 cert\n"
	if err := os.WriteFile(filepath.Join(s.own.Dir, "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, db, "CREATE ROLE shop LOGIN", "ALTER SYSTEM SET ssl_ca_file = 'ca.pem'", "ALTER SYSTEM SET ssl_cert_file = 'server.pem'", "ALTER SYSTEM SET ssl_key_file = 'server.key'",
		"ALTER SYSTEM SET ssl_crl_file = 'revoked.pem'", "ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")
	return s
}

func (s *certificates) admin() string {
	return "postgres://postgres@" + s.own.Address + "/postgres?sslmode=disable"
}

func (s *certificates) url() string {
	return "postgres://shop@" + s.own.Address + "/postgres?sslmode=require"
}

// rotate revokes the role's certificate before a new one is in the store, and ends all sessions of the role.
func (s *certificates) rotate(t *testing.T) {
	t.Helper()
	if old := s.current.Load(); old != nil {
		s.Revoke(old)
		s.WriteRevoked(s.own.Dir)
		run(t, s.db, "SELECT pg_reload_conf()")
		for s.takes(t, old) { // the server reads the list when it comes to it
			time.Sleep(time.Millisecond)
		}
	}
	s.current.Store(s.Client("shop"))
	run(t, s.db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'")
}

// takes reports whether the server takes a certificate of the role.
func (s *certificates) takes(t *testing.T, cert *tls.Certificate) bool {
	t.Helper()
	config, err := pgx.ParseConfig(s.url())
	if err != nil {
		t.Fatal(err)
	}
	config.TLSConfig = s.Config(cert)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		return false
	}
	_ = conn.Close(t.Context())
	return true
}

// beforeConnect sets the current certificate.
func (s *certificates) beforeConnect(_ context.Context, config *pgx.ConnConfig) error {
	config.TLSConfig = s.Config(s.current.Load())
	return nil
}

// TestRotatedCertificate rotates the certificate of the journal's role while a client works, and revokes the old one first: with Open and with a pool of the
// program's own. No call fails, and each operation takes effect once.
func TestRotatedCertificate(t *testing.T) {
	t.Parallel()
	s := startCertificates(t)
	for schema, opened := range map[string]func(t *testing.T, opts postgres.Options) *postgres.Journal{
		"by_open": func(t *testing.T, opts postgres.Options) *postgres.Journal {
			opts.BeforeConnect = s.beforeConnect
			return open(t, s.url(), opts)
		},
		"by_pool": func(t *testing.T, opts postgres.Options) *postgres.Journal {
			return openPool(t, ownPool(t, s.url(), func(c *pgxpool.Config) { c.BeforeConnect = s.beforeConnect }), opts)
		},
	} {
		t.Run(schema, func(t *testing.T) {
			opts := postgres.Options{Schema: schema, MaxConns: 4}
			if err := postgres.Migrate(t.Context(), s.admin(), opts); err != nil {
				t.Fatal(err)
			}
			run(t, s.db, "GRANT ALL ON SCHEMA "+schema+" TO shop", "GRANT ALL ON ALL TABLES IN SCHEMA "+schema+" TO shop", "GRANT ALL ON ALL SEQUENCES IN SCHEMA "+schema+" TO shop")
			s.rotate(t)
			j := opened(t, opts)
			sqltest.Rotated(t, j, func(int) { s.rotate(t) })
		})
	}
}
