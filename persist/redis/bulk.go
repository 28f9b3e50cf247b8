package redis

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/oncehttp/oncehttp/persist"
)

// bulkName is the server's setting that bounds each argument of a command. The server ends a connection that brings a larger one.
const bulkName = "proto-max-bulk-len"

// bulkDefault is its default, which counts where a server does not tell its settings.
const bulkDefault = 512 << 20

// most is proto-max-bulk-len, as the latest connection has found it. The zero value is the default. It is safe for concurrent use.
type most struct{ found atomic.Int64 }

// learn notes what a server says.
func (m *most) learn(setting string) {
	if n, err := strconv.ParseInt(setting, 10, 64); err == nil && n > 0 {
		m.found.Store(n)
	}
}

// fits returns an error if a part of the entry is larger than the server takes. Error: persist.ErrTooLarge.
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

// isTooLarge reports whether a server has answered that an argument is larger than it takes.
func isTooLarge(err error) bool {
	return err != nil && strings.Contains(err.Error(), "invalid bulk length")
}
