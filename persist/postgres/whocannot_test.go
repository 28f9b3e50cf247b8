package postgres_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestWhoCannot(t *testing.T) {
	t.Parallel()
	sqltest.WhoCannot(t, func(t *testing.T) func() persist.Journal {
		opts := migrated(t, admin(t))
		return func() persist.Journal { return open(t, server(t), opts) }
	})
}

// TestNewer: a row that a later version has written is listed as that with what stands in clear, told by its format, and neither claimed, nor
// changed, nor swept.
func TestNewer(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	j := open(t, server(t), opts)
	sqltest.Newer(t, j, func(key string) {
		_, err := db.Exec("UPDATE "+opts.Schema+".record SET needs = '2 moon=full', intent = '\\x00ff', progress = '\\xff' WHERE op_key = $1", []byte(key))
		if err != nil {
			t.Fatal(err)
		}
	})
}
