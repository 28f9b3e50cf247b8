package postgres_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncehttp/oncehttp/persist/postgres"
)

// TestConnectError: why there is no connection is one line that says it once, although the driver tries with TLS and
// without; the errors below are found.
func TestConnectError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // nobody listens there now
	url := "postgres://shop@" + l.Addr().String() + "/shop"
	_, opened := postgres.Open(t.Context(), url, postgres.Options{})
	for what, err := range map[string]error{"Open": opened, "Migrate": postgres.Migrate(t.Context(), url, postgres.Options{})} {
		if !errors.As(err, new(net.Error)) || !errors.As(err, new(*pgconn.ConnectError)) {
			t.Fatalf("%s: %v, want an error of the network", what, err)
		}
		if said := err.Error(); strings.Count(said, "dial error") != 1 || strings.Contains(said, "\n") || !strings.Contains(said, "database=shop`: 127.0.0.1") {
			t.Errorf("%s: %q, want one line that says it once", what, said)
		}
	}
}
