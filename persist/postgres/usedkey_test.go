package postgres_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestUsedKey(t *testing.T) {
	t.Parallel()
	e := engine(t)
	sqltest.UsedKey(t, e, "record::text", "seq IS NULL AND op_key IS NULL AND account IS NULL AND sweep_at IS NULL AND intent IS NULL AND length(progress) < 48")
}
