package set2

import (
	"net/http"
	"sync"
)

// newVarchar has a column for keys that is cut at 64 bytes.
func newVarchar() http.Handler {
	l := newLayer()
	l.id = func(c *call) string { return c.caller + "\n" + c.key[:min(len(c.key), 64)] }
	return l
}

// newRowLimit has the bodies in its rows, and rows of a limited size. What does not fit is left out.
func newRowLimit() http.Handler {
	l := newLayer()
	l.keeps = func(c *call, status int) bool { return status < 300 && len(c.body) <= 64<<10 }
	return l
}

// uniquePair has an index that is unique over the key and the print of a request.
type uniquePair struct {
	next  http.Handler
	rows  *table
	mu    sync.Mutex
	first map[string]string // the print of the request that has ended first, by key
}

func newUniquePair() http.Handler {
	return &uniquePair{next: newService(), rows: newTable(), first: map[string]string{}}
}

// owner returns the print of the request that a key was used for. A request at work has not used it yet.
func (u *uniquePair) owner(id string) (string, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	print, found := u.first[id]
	return print, found
}

// own notes what a key was used for.
func (u *uniquePair) own(id, print string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, found := u.first[id]; !found {
		u.first[id] = print
	}
}

func (u *uniquePair) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := open(w, r, u.next)
	if !ok {
		return
	}
	if print, used := u.owner(c.id()); used && print != c.print {
		c.settle(row{print: print})
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
