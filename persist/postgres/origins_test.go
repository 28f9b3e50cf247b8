package postgres_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// TestOrigins: what DueTimes needs does not grow with a statement for each origin, and its plan needs no statistics.
func TestOrigins(t *testing.T) {
	t.Parallel()
	sqltest.Origins(t, engine(t), sqltest.Series{
		Rows:   "generate_series(1::bigint, %d) AS n (i)",
		Bytes:  "substr(sha256(convert_to(i::text, 'UTF8')), 1, 23)",
		Origin: "convert_to('https://c' || i %% %d || '.example:443', 'UTF8')",
	})
}
