package postgres_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestCompany(t *testing.T) {
	t.Parallel()
	sqltest.Company(t, func(t *testing.T) func() persist.Journal {
		opts := migrated(t, admin(t))
		return func() persist.Journal { return open(t, server(t), opts) }
	})
}
