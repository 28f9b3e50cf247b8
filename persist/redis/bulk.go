package redis

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/oncehttp/oncehttp/persist"
)

// bulkName is the server's setting for the largest argument of a command. The server ends a connection on a larger one.
const bulkName = "proto-max-bulk-len"

// bulkDefault is its default. It counts if a server does not tell its settings.
const bulkDefault = 512 << 20

// most is proto-max-bulk-len, as found by the latest connection. The zero value is the default. It is safe for
// concurrent use.
type most struct{ found atomic.Int64 }

// learn notes the largest size of one value that a server takes, as its setting says it: a larger record is refused before it is sent. A setting that is no
// positive number is ignored.
func (m *most) learn(setting string) {
	if n, err := strconv.ParseInt(setting, 10, 64); err == nil && n > 0 {
		m.found.Store(n)
	}
}

// fits returns an error if a part of the entry (an encoded record) is longer than the server takes in one value: m.found, or the default if the server has not
// told it.
// Error: persist.ErrTooLarge.
func (m *most) fits(rec *persist.Record, e *entry) error {
	bytes := m.found.Load()
	if bytes == 0 {
		bytes = bulkDefault
	}
	largest := max(len(e.head), len(e.intent), len(e.progress), len(e.body), len(e.answer))
	if int64(largest) <= bytes {
		return nil
	}
	return fmt.Errorf("%w: account %q, key %q: its largest part has %d bytes, and the server's %s allows %d", persist.ErrTooLarge, rec.Account, rec.Key, largest, bulkName, bytes)
}

// isTooLarge reports whether a server has refused an argument as too large. Redis has no code for that: only the text tells it.
func isTooLarge(err error) bool {
	return err != nil && strings.Contains(err.Error(), "invalid bulk length")
}
