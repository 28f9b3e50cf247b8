package mysql_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestWhoCannot(t *testing.T) {
	t.Parallel()
	sqltest.WhoCannot(t, func(t *testing.T) func() persist.Journal {
		opts := migrated(t, pool(t, ""))
		return func() persist.Journal { return open(t, server(t), opts) }
	})
}

// TestNewer: as on PostgreSQL.
func TestNewer(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	opts := migrated(t, db)
	sqltest.Newer(t, open(t, server(t), opts), func(key string) {
		_, err := db.Exec("UPDATE "+opts.Database+".oncehttp_record SET needs = '2 moon=full', intent = x'00ff', progress = x'ff' WHERE op_key = ?", []byte(key))
		if err != nil {
			t.Fatal(err)
		}
	})
}
