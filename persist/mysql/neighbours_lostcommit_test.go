package mysql_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// The documented transaction, repeated after a lost COMMIT, whatever became of its operation meanwhile.
func TestNeighbourLostCommit(t *testing.T) {
	t.Parallel()
	sqltest.LostCommitNeighbours(t, engine(t))
}
