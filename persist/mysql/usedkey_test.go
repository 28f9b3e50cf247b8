package mysql_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestUsedKey(t *testing.T) {
	t.Parallel()
	for name, sealed := range map[string]bool{"in clear": false, "sealed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			most := map[bool]string{false: "48", true: "240"}[sealed] // with the digest of an account header
			texts := map[string]string{
				"oncehttp_record": "CONCAT_WS(' ', account, op_key, origin, needs, lease_owner, intent, progress, body, answer, hold_reason)",
				"oncehttp_used":   "CONCAT_WS(' ', id, account, progress)",
			}
			sqltest.UsedKey(t, engine(t), texts, "oncehttp_used WHERE account IS NULL AND sweep_at IS NULL AND LENGTH(progress) < "+most, sealed)
		})
	}
}
