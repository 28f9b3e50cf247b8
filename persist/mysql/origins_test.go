package mysql_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// TestOrigins: what DueTimes needs does not grow with a statement for each origin.
func TestOrigins(t *testing.T) {
	t.Parallel()
	sqltest.Origins(t, engine(t), sqltest.Series{
		Rows:   "(SELECT seq AS i FROM seq_1_to_%d) n",
		Bytes:  "LEFT(UNHEX(SHA2(i, 256)), 23)",
		Origin: "CONCAT('https://c', i %% %d, '.example:443')",
	})
}
