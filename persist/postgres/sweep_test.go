package postgres_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestSweepPages(t *testing.T) {
	t.Parallel()
	e := engine(t)
	sqltest.SweepPages(t, e, copies(e.Records, 2500))
}

func TestSweepLocked(t *testing.T) {
	t.Parallel()
	e := engine(t)
	sqltest.SweepLocked(t, e, copies(e.Records, 200))
}
