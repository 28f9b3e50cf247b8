package dsn_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/dsn"
)

// TestEngine: URLs and what drivers take are told from names of files.
func TestEngine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://db.test/shop": "postgres", "POSTGRESQL://db.test": "postgres", "postgres:shop": "postgres", "host=db.test dbname=shop": "postgres",
		"application_name=shop host=db.test": "postgres", "mysql://db.test": "mysql", "mariadb://db.test": "mysql", "u:p@tcp(db.test:3306)/shop": "mysql",
		"u@unix(/run/mysqld.sock)/shop": "mysql", "redis://db.test": "redis", "rediss://db.test": "redis", "redis:6379": "redis",
		"": "", "payments.db": "", "/var/lib/payments.db": "", "postgres": "", "postgres.db": "", "host=a": "", "my orders=1.db": "", `C:\payments.db`: "",
		"a@b.db": "", "sqlite://x": "",
	} {
		if got := dsn.Engine(text); got != want {
			t.Errorf("Engine(%q) = %q, want %q", text, got, want)
		}
	}
}
