package set2

import (
	"net/http"
	"sync"
	"time"
)

// latency is the time of a statement.
const latency = time.Millisecond

// row is the state of a key in a table.
type row struct {
	print   string // the fingerprint of the first request
	done    bool   // the request has ended, and status, header and body are its outcome
	status  int
	header  http.Header
	body    []byte
	until   time.Time // the row expires then; zero: never
	touched time.Time // of the last insert, also a refused one, or set
}

// good reports whether the outcome is a success with an effect. It is true, too, for a row at
// work.
func (o row) good() bool { return o.status < 300 }

// expired reports whether the time of the row is over, so that it no longer counts. A row without an end never expires.
func (o row) expired() bool { return !o.until.IsZero() && !time.Now().Before(o.until) }

// table has rows by primary key. Each method is one atomic statement.
type table struct {
	mu   sync.Mutex
	rows map[string]row
}

// newTable returns an empty table: a row for each key.
func newTable() *table { return &table{rows: map[string]row{}} }

// get returns a row; false if there is none, or it has expired. latency is the time of a database's statement.
func (t *table) get(id string) (row, bool) {
	time.Sleep(latency)
	t.mu.Lock()
	defer t.mu.Unlock()
	had, found := t.rows[id]
	return had, found && !had.expired()
}

// insert adds a row, unless there is one. It returns the row in the table; true if it is the new one. An expired row counts as none. latency is the
// time of a database's statement.
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

// set inserts or overwrites a row. latency is the time of a database's statement.
func (t *table) set(id string, o row) {
	time.Sleep(latency)
	t.mu.Lock()
	defer t.mu.Unlock()
	o.touched = time.Now()
	t.rows[id] = o
}

// remove deletes a row. latency is the time of a database's statement.
func (t *table) remove(id string) {
	time.Sleep(latency)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, id)
}

// extend lets a row at work expire d from now. Other rows stay as they are.
func (t *table) extend(id string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, found := t.rows[id]; found && !had.done && !had.expired() {
		had.until = time.Now().Add(d)
		t.rows[id] = had
	}
}

// sweep deletes the rows with an outcome that were not touched for longer than age.
func (t *table) sweep(age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, had := range t.rows {
		if had.done && time.Since(had.touched) > age {
			delete(t.rows, id)
		}
	}
}
