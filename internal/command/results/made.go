package results

import (
	"context"
	"sync"

	"github.com/oncehttp/oncehttp"
)

// Made counts the requests that this run hands to the network, by operation. The counts of a record are of earlier runs, too. The zero value is ready.
// Safe for concurrent use.
type Made struct {
	mu sync.Mutex
	of map[string]made // by key
}

// made are the requests for one operation.
type made struct {
	call     uint64 // the latest call
	ofCall   int    // requests of it so far
	requests int    // of all calls
}

// Counting returns a function for oncehttp.Config.Observe that counts the requests handed to the network, by operation, and calls next if it is not nil.
func (m *Made) Counting(next func(context.Context, oncehttp.Event)) func(context.Context, oncehttp.Event) {
	return func(ctx context.Context, e oncehttp.Event) {
		if e.Sends > 0 {
			m.see(&e)
		}
		if next != nil {
			next(ctx, e)
		}
	}
}

// see counts the requests of a call since its last event. An event has the number of the whole call, so that only the difference to the requests counted of
// this call (ofCall) is added.
func (m *Made) see(e *oncehttp.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]made{}
	}
	of := m.of[string(e.Key)]
	if of.call != e.Call {
		of.call, of.ofCall = e.Call, 0
	}
	of.requests += max(e.Sends-of.ofCall, 0)
	of.ofCall = max(e.Sends, of.ofCall)
	m.of[string(e.Key)] = of
}

// Take puts the requests of an operation into its line, and forgets them. Call it at the end of the operation's last call.
func (m *Made) Take(l *Line) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.Requests = m.of[l.Key].requests
	delete(m.of, l.Key)
}
