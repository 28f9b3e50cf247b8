package set2

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
)

// layer is the common design: one row for a key, inserted before the work and updated after
// it.
type layer struct {
	next  http.Handler
	rows  *table
	id    func(c *call) string           // the primary key
	keeps func(c *call, status int) bool // true: the outcome is kept; false: the row is deleted
	polls bool                           // repeats wait for the first; false: they get 409
}

// newLayer returns a correct layer of idempotency keys before a new service. A broken server replaces one of its parts.
func newLayer() *layer {
	return &layer{next: newService(), rows: newTable(), id: (*call).id, keeps: successes}
}

// newService returns the business behind the layer of keys: it has each effect before its answer.
func newService() http.Handler { return strangers.NewService() }

// successes reports whether an outcome is stored under its key: only a success, which had an effect. After another one a repeat is executed.
func successes(_ *call, status int) bool { return status < 300 }

// ServeHTTP executes a request with a valid key, or repeats the answer to that key. open has answered any other request.
func (l *layer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := open(w, r, l.next); ok {
		l.serve(c)
	}
}

// serve executes a call under a new key, and stores the outcome. For a used key it replays the outcome, or refuses the call; a layer that polls first
// waits for the end of the same request.
func (l *layer) serve(c *call) {
	id := l.id(c)
	for {
		had, mine := l.rows.insert(id, row{print: c.print})
		if mine {
			outcome := c.execute(l.next)
			if l.keeps(c, outcome.status) {
				l.rows.set(id, outcome)
			} else {
				l.rows.remove(id)
			}
			c.give(outcome)
			return
		}
		if !l.polls || had.done || had.print != c.print {
			c.settle(had)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
