package postgres_test

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
			e := engine(t)
			sqltest.UsedKey(t, e, map[string]string{e.Records: "record::text"}, e.Records+" WHERE swept = 2 AND seq IS NULL AND op_key IS NULL AND account IS NULL AND sweep_at IS NULL AND intent IS NULL AND LENGTH(progress) < "+most, sealed)
		})
	}
}
