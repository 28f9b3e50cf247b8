package redis_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// What is over proto-max-bulk-len in another place, or beside something that stands.
func TestNeighbourTooLarge(t *testing.T) {
	t.Parallel()
	s := start(t, append(durable(), "--proto-max-bulk-len", strconv.Itoa(bulk))...)
	opts := own(t, s.url())
	opts.CallTimeout = 6 * time.Second
	sqltest.TooLarge(t, open(t, s.url(), opts), bulk)
}
