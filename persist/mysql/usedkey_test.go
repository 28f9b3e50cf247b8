package mysql_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestUsedKey(t *testing.T) {
	t.Parallel()
	e := engine(t)
	text := "CONCAT_WS(' ', account, op_key, origin, needs, lease_owner, intent, progress, body, answer, hold_reason)"
	sqltest.UsedKey(t, e, text, "seq > 0 AND op_key IS NULL AND account IS NULL AND sweep_at IS NULL AND intent IS NULL AND LENGTH(progress) < 48")
}
