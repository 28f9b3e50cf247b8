package mysql_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestSealedTable(t *testing.T) {
	t.Parallel()
	sqltest.SealedTable(t, engine(t))
}

func TestSealedTableStanding(t *testing.T) {
	t.Parallel()
	sqltest.SealedTableStanding(t, engine(t))
}
