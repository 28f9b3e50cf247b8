package run

import (
	"context"
	"log/slog"
	"sync"
)

// unowed counts the ends and holds by Runs of a client with OnResult that owe no result, until the logger is told. The zero value is ready. It is
// safe for concurrent use.
type unowed struct {
	mu   sync.Mutex
	n    int    // ends and holds so far
	key  string // of the first one
	told bool   // the logger was told of them
}

// note counts an operation that has ended, or is held, and whose result no OnResult gets, since a client without OnResult began it. The logger is
// told of the number later.
func (u *unowed) note(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n == 0 {
		u.key = key
	}
	u.n++
}

// tell returns the number of noted operations and the key of the first, at its first call with any; later calls return zero.
func (u *unowed) tell() (n int, key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told || u.n == 0 {
		return 0, ""
	}
	u.told = true
	return u.n, u.key
}

// tellUnowed tells the logger, once for a client, of ends and holds without a result to deliver.
func (d *delivering) tellUnowed(ctx context.Context) {
	if n, key := d.engine.unowed.tell(); n > 0 {
		d.cfg.log(ctx, slog.LevelInfo, "operations owe no result: a client without OnResult began them (said once)", key, nil, slog.Int("operations", n))
	}
}
