package set2

import (
	"net/http"
	"sync"
)

// newVarchar returns a server with a column for keys that cuts them at 64 bytes. This is its fault.
func newVarchar() http.Handler {
	l := newLayer()
	l.id = func(c *call) string { return c.caller + "\n" + c.key[:min(len(c.key), 64)] }
	return l
}

// newRowLimit returns a server with a limit on the size of rows with their bodies. Its fault: larger ones are not stored.
func newRowLimit() http.Handler {
	l := newLayer()
	l.keeps = func(c *call, status int) bool { return status < 300 && len(c.body) <= 64<<10 }
	return l
}

// uniquePair has an index that is unique over key and fingerprint. Its fault: another request
// under the key is executed while the first is at work.
type uniquePair struct {
	next  http.Handler
	rows  *table
	mu    sync.Mutex        // guards first
	first map[string]string // the fingerprint of the first request to end, by id
}

// newUniquePair returns a server with an index that is unique over key and fingerprint. Its fault, which the test suite must find: two different
// requests under one key are both executed if they overlap.
func newUniquePair() http.Handler {
	return &uniquePair{next: newService(), rows: newTable(), first: map[string]string{}}
}

// owner returns the fingerprint of the request that used a key; false if none has ended yet.
func (u *uniquePair) owner(id string) (string, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	print, found := u.first[id]
	return print, found
}

// own stores the fingerprint of a request that has ended, unless its key has one.
func (u *uniquePair) own(id, print string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, found := u.first[id]; !found {
		u.first[id] = print
	}
}

// ServeHTTP refuses a key that another request has used, and executes each new pair of key and fingerprint. The deliberate fault: a key counts as
// used only when its request has ended, so two different requests at once are both executed.
func (u *uniquePair) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := open(w, r, u.next)
	if !ok {
		return
	}
	if print, used := u.owner(c.id()); used && print != c.print {
		c.settle(row{print: print}) // a refusal: the fingerprints differ
		return
	}
	pair := c.id() + "\n" + c.print
	had, mine := u.rows.insert(pair, row{print: c.print})
	if !mine {
		c.settle(had)
		return
	}
	outcome := c.execute(u.next)
	if outcome.good() {
		u.own(c.id(), c.print)
		u.rows.set(pair, outcome)
	} else {
		u.rows.remove(pair)
	}
	c.give(outcome)
}
