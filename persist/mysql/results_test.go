package mysql_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestMarksInTransactions(t *testing.T) {
	t.Parallel()
	sqltest.MarksInTransactions(t, engine(t), func(err error) bool { return number(err) == 1205 })
}

func TestDeliversInOrder(t *testing.T) {
	t.Parallel()
	sqltest.DeliversInOrder(t, engine(t))
}
