package redis_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestDeliversInOrder(t *testing.T) {
	t.Parallel()
	sqltest.DeliversInOrder(t, engine(t, durableURL(t), 8))
}

func TestResultOfDo(t *testing.T) {
	t.Parallel()
	sqltest.ResultOfDo(t, engine(t, durableURL(t), 8))
}
