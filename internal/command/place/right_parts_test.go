package place

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestMissingRight: a right that a role lacks on PostgreSQL is told in words, without the code of the server.
func TestMissingRight(t *testing.T) {
	t.Parallel()
	err := &pgconn.PgError{Severity: "ERROR", Code: "42501", Message: "permission denied for table record"}
	if got, want := serverFault("postgres://shop@127.0.0.1:5432/db", err), `user "shop" has not all rights that this needs: permission denied for table record`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
