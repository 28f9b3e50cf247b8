package set1

import (
	"bytes"
	"container/list"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
)

// newByValue returns a correct server that compares bodies as JSON values, and UUIDs as keys without regard to case. Repeats wait for the first
// request, and failures are kept, too.
func newByValue() http.Handler {
	l := newLayer(newService())
	l.print = byValue
	l.scope = func(r *http.Request, key string) string {
		if isUUID(key) {
			key = strings.ToLower(key)
		}
		return byCaller(r, key)
	}
	l.keeps = func(status int) bool {
		return status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable
	}
	l.again = func(w http.ResponseWriter, p *reply) {
		w.Header().Set("Idempotent-Replayed", "true")
		give(w, p)
	}
	return l
}

// isUUID reports whether a key has the form of a UUID.
func isUUID(key string) bool {
	if len(key) != 36 {
		return false
	}
	for i, c := range []byte(key) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
			return false
		}
	}
	return true
}

// newLateAndShy returns a correct server with effects a little after its answers. It answers each seventh request with 503, and refuses large bodies.
func newLateAndShy() http.Handler {
	s := strangers.NewService()
	s.Late = 35 * time.Millisecond
	return shy(7, upTo(100<<10, newLayer(s)))
}

// newOneOwner returns a correct server that gives each key to the caller who used it first, and refuses others. It works at two requests at a time.
func newOneOwner() http.Handler {
	l := newLayer(limited(2, newService()))
	l.scope = func(_ *http.Request, key string) string { return key }
	l.print = func(r *http.Request, body []byte) string { return byCaller(r, byBytes(r, body)) }
	l.busy = func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusConflict, "the first is at work")
	}
	return l
}

// recent is a store that remembers the 1,000 keys used last.
type recent struct {
	*memory
	uses  *list.List               // of keys, the newest in front
	place map[string]*list.Element // of a key in uses
}

// newBounded returns a correct server that remembers 1,000 keys, requires a key, and accepts POST only.
func newBounded() http.Handler {
	l := newLayer(newService())
	l.store = &recent{memory: newMemory(), uses: list.New(), place: map[string]*list.Element{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			l.ServeHTTP(w, r)
		case r.Method != http.MethodPost:
			refuse(w, http.StatusMethodNotAllowed, "POST, if you please")
		case keyOf(r) == "":
			refuse(w, http.StatusBadRequest, "a key, if you please")
		default:
			l.ServeHTTP(w, r)
		}
	})
}

// claim reserves a key for the caller, if it is new: then the result is true, and the caller must execute the request. Beyond 1,000 keys it drops
// those used longest ago, except those at work.
func (c *recent) claim(id, print string) (*entry, bool) {
	e, mine := c.memory.claim(id, print)
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.place[id]; at != nil {
		c.uses.MoveToFront(at)
		return e, mine
	}
	c.place[id] = c.uses.PushFront(id)
	for at := c.uses.Back(); at != nil && c.uses.Len() > 1000; {
		before := at.Prev()
		if old, _ := at.Value.(string); c.entries[old] == nil || ended(c.entries[old]) { // what is at work stays
			c.uses.Remove(at)
			delete(c.place, old)
			delete(c.entries, old)
		}
		at = before
	}
	return e, mine
}

// newQueryCounts returns a correct server that compares the query, too, keeps failures of the client, and repeats answers with other white space.
func newQueryCounts() http.Handler {
	l := newLayer(newService())
	l.print = func(r *http.Request, body []byte) string { return byBytes(r, body) + r.URL.RawQuery }
	l.keeps = func(status int) bool { return status < 500 && status != http.StatusTooManyRequests }
	l.busy = func(w http.ResponseWriter) { refuse(w, http.StatusServiceUnavailable, "the first is at work") }
	l.again = func(w http.ResponseWriter, p *reply) {
		var pretty bytes.Buffer
		if json.Indent(&pretty, p.body, "", "  ") == nil {
			p = &reply{status: p.status, header: p.header, body: pretty.Bytes()}
		}
		give(w, p)
	}
	return l
}
