package set2

import (
	"net/http"
	"sync"
	"time"
)

// batched commits outcomes in batches: one transaction for all of 50 ms. Its fault: a crash
// rolls back the outcomes of other requests.
type batched struct {
	next    http.Handler
	mu      sync.Mutex     // guards the maps
	working map[string]row // requests at work
	pending map[string]row // outcomes of the open transaction
	rows    map[string]row // outcomes that are committed
}

// newBatched returns a server that commits the outcomes of several requests in one transaction. Its fault: a crash rolls back the outcomes of other
// requests.
func newBatched() http.Handler {
	return &batched{next: newService(), working: map[string]row{}, pending: map[string]row{}, rows: map[string]row{}}
}

// claim returns the row of a key (a request with its outcome): of one at work, one in the open transaction (pending), or a stored one. mine is true
// if there was none: then the caller must execute the call, and call end.
func (b *batched) claim(c *call) (had row, mine bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rows := range []map[string]row{b.working, b.pending, b.rows} {
		if had, found := rows[c.id()]; found {
			return had, false
		}
	}
	b.working[c.id()] = row{print: c.print}
	return row{}, true
}

// end writes a success into the open transaction (pending), which is committed 50 ms after its first row, and drops failures. After a crash it drops
// the whole transaction: the fault.
func (b *batched) end(c *call, outcome row, crashed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.working, c.id())
	switch {
	case crashed:
		clear(b.pending)
	case outcome.good():
		if len(b.pending) == 0 {
			time.AfterFunc(50*time.Millisecond, b.commit)
		}
		b.pending[c.id()] = outcome
	}
}

// commit stores all outcomes that wait for the end of the common transaction.
func (b *batched) commit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, outcome := range b.pending {
		b.rows[id] = outcome
	}
	clear(b.pending)
}

// ServeHTTP executes a new key, and settles others from their row (a request with its outcome). It tells end of a panic of the service: that rolls
// back the outcomes of other requests, too.
func (b *batched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := open(w, r, b.next)
	if !ok {
		return
	}
	had, mine := b.claim(c)
	if !mine {
		c.settle(had)
		return
	}
	crashed := true
	watch := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.next.ServeHTTP(w, r)
		crashed = false
	})
	outcome := c.execute(watch)
	b.end(c, outcome, crashed)
	c.give(outcome)
}
