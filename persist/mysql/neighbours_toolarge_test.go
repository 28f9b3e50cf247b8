package mysql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// What is over max_allowed_packet in another place, or beside something that stands.
func TestNeighbourTooLarge(t *testing.T) {
	t.Parallel()
	_, url := inOwn(t, ownServer(t, fmt.Sprintf("--max-allowed-packet=%d", packet)))
	sqltest.TooLarge(t, open(t, url, journal.Options{CallTimeout: 10 * time.Second}), packet)
}
