package mysql_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// TestOwnServer changes settings of a server of its own, and stops and starts it.
func TestOwnServer(t *testing.T) {
	t.Parallel()
	own := ownServer(t)
	db, url := inOwn(t, own)
	volatile(t, db, url, map[[2]int]bool{{0, 1}: false, {1, 0}: true, {1, 1}: true, {2, 1}: false, {3, 0}: true})
	inJournal, err := sql.Open("mysql", "root@tcp("+own.Address+")/journal")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inJournal.Close() })
	sqltest.Restarted(t, sqltest.Engine{
		Address: own.Address, DB: inJournal, Records: "oncehttp_record",
		Open: func(t testing.TB, _ string, limit time.Duration) persist.Journal {
			return open(t, url, journal.Options{CallTimeout: limit})
		},
	}, own)
}
