package postgres_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// TestRestarted stops and starts a server of its own.
func TestRestarted(t *testing.T) {
	t.Parallel()
	own := ownServer(t)
	url := "postgres://postgres@" + own.Address + "/postgres"
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := postgres.Migrate(t.Context(), url, postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	sqltest.Restarted(t, sqltest.Engine{
		Address: own.Address, DB: db, Records: "oncehttp.record",
		Open: func(t testing.TB, _ string, limit time.Duration) persist.Journal {
			return open(t, url, postgres.Options{CallTimeout: limit})
		},
	}, own)
}
