package place

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// The answer that says most counts, wherever it stands among the tries of a driver.
func TestServerFaultOfSeveralTries(t *testing.T) {
	t.Parallel()
	err := errors.Join(errors.New("tls error: server refused TLS connection"), &pgconn.PgError{Code: "28P01", Message: "password authentication failed"})
	if got := serverFault("postgres://u@h:1/db", err); got != `user "u", or the password, is refused (PGPASSWORD, ~/.pgpass, or the URL in @FILE)` {
		t.Errorf("%q", got)
	}
	for name, journal := range map[string]string{"a file": "payments.db", "no fault of the URL": "postgres://u@h:1/db"} {
		if got := serverFault(journal, errors.New("permission denied for table x")); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestFullDiskIsSaidOnce: the client and the journal end with the same error of a full disk, and one line tells of it.
func TestFullDiskIsSaidOnce(t *testing.T) {
	t.Parallel()
	full := errors.New("persist/bolt: tiny/j.db: not written: write tiny/j.db: no space left on device")
	if got := JournalError("tiny/j.db", errors.Join(full, full)).Error(); got != "journal tiny/j.db: not written: write tiny/j.db: no space left on device" {
		t.Error(got)
	}
}
