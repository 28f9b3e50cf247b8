package set2

import (
	"net/http"
	"sync"
	"time"
)

// latency is how long a statement takes.
const latency = time.Millisecond

// row is what a table has of a key.
type row struct {
	print   string // of the first request
	done    bool   // whether the request has ended; then the rest is its outcome
	status  int
	header  http.Header
	body    []byte
	until   time.Time // when the row expires; zero: never
	touched time.Time // when the row was read or written last
}

// good says whether the outcome is that of an effect.
func (o row) good() bool { return o.status < 300 }

// expired says whether the row is none any more.
func (o row) expired() bool { return !o.until.IsZero() && !time.Now().Before(o.until) }

// table is a table with a primary key. Each statement is atomic.
type table struct {
	mu   sync.Mutex
	rows map[string]row
}

func newTable() *table { return &table{rows: map[string]row{}} }

// get returns a row, and whether there is one.
func (t *table) get(id string) (row, bool) {
	time.Sleep(latency)
	t.mu.Lock()
	defer t.mu.Unlock()
	had, found := t.rows[id]
	return had, found && !had.expired()
}

// insert inserts a row, unless there is one. It returns the row that is there, and whether that is the new one.
func (t *table) insert(id string, fresh row) (row, bool) {
	time.Sleep(latency)
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, found := t.rows[id]; found && !had.expired() {
		had.touched = time.Now()
		t.rows[id] = had
		return had, false
	}
	fresh.touched = time.Now()
	t.rows[id] = fresh
	return fresh, true
}

// set inserts or overwrites a row.
func (t *table) set(id string, o row) {
	time.Sleep(latency)
	t.mu.Lock()
	defer t.mu.Unlock()
	o.touched = time.Now()
	t.rows[id] = o
}

// remove deletes a row.
func (t *table) remove(id string) {
	time.Sleep(latency)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, id)
}

// extend has a row expire later, if its request is at work.
func (t *table) extend(id string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, found := t.rows[id]; found && !had.done && !had.expired() {
		had.until = time.Now().Add(d)
		t.rows[id] = had
	}
}

// sweep deletes the rows with an outcome that nobody has touched for some time.
func (t *table) sweep(age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, had := range t.rows {
		if had.done && time.Since(had.touched) > age {
			delete(t.rows, id)
		}
	}
}
