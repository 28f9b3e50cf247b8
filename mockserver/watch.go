package mockserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// The rules that the server can hold a client to by what reaches it.
const (
	ruleValidKey   = "key-valid"
	ruleOneKey     = "one-key"
	ruleSameBytes  = "same-bytes"
	ruleNoOverlap  = "no-overlap"
	ruleRetryAfter = "retry-after"
	ruleFinal      = "final-answer"
)

const (
	// earlySlack forgives a client whose timer is a little fast.
	earlySlack = 20 * time.Millisecond
	// abandonSlack is how long after the client has left the server may notice.
	abandonSlack = 250 * time.Millisecond
)

// watch follows what clients do with their keys. It is safe for concurrent use.
type watch struct {
	cfg    *Config
	ledger *Ledger

	mu         sync.Mutex
	keys       map[string]*career
	operations map[string]string // the key that an operation began with
}

// career is one key as the clients have used it.
type career struct {
	fingerprint digest
	active      []*sight
	uncertain   bool      // a send has had no whole answer
	final       string    // the final answer that was given, "" for none
	notBefore   time.Time // as the last Retry-After asked
}

// sight is one send as the server saw it.
type sight struct {
	key       string // "" for none or an invalid one
	operation string
	context   context.Context
	begun     time.Time
	overlaps  []*sight // sends that came while this one was being handled

	// Set once the server is done with it.
	done    bool
	ended   time.Time
	status  int  // what was answered, 0 for nothing
	whole   bool // all of the answer was written to a client that was there
	advised bool // the answer said not to try again
	wait    string
}

func newWatch(cfg *Config, ledger *Ledger) *watch {
	w := &watch{cfg: cfg, ledger: ledger}
	w.reset()
	return w
}

func (w *watch) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys, w.operations = map[string]*career{}, map[string]string{}
}

// begin notes a send and says what it breaks.
func (w *watch) begin(r *http.Request, k reading, print digest, body []byte) *sight {
	v := &sight{context: r.Context(), begun: time.Now()}
	if k.present && k.err == nil {
		v.key = k.key
	}
	v.operation = v.key
	if w.cfg.OperationPointer != "" {
		v.operation, _ = lookupText(body, w.cfg.OperationPointer)
	}
	w.ledger.send(v.key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.err != nil {
		w.violated(ruleValidKey, "", k.err.Error())
	}
	w.identify(v)
	if v.key != "" {
		w.examine(v, print)
	}
	return v
}

// identify holds an operation to the key that it began with.
func (w *watch) identify(v *sight) {
	if w.cfg.OperationPointer == "" || v.operation == "" {
		return
	}
	first, known := w.operations[v.operation]
	if !known {
		w.operations[v.operation] = v.key
	} else if first != v.key {
		w.violated(ruleOneKey, v.key, fmt.Sprintf("operation %q began with key %q", v.operation, first))
	}
}

// examine holds a send to what its key has seen so far.
func (w *watch) examine(v *sight, print digest) {
	c := w.keys[v.key]
	if c == nil {
		c = &career{fingerprint: print}
		w.keys[v.key] = c
	}
	if c.fingerprint != print {
		w.violated(ruleSameBytes, v.key, "the request differs from the first one with this key")
	}
	if c.final != "" {
		w.violated(ruleFinal, v.key, "sent again after "+c.final)
	}
	if early := c.notBefore.Sub(v.begun); early > earlySlack {
		w.violated(ruleRetryAfter, v.key, fmt.Sprintf("sent %v before Retry-After allowed it", early.Round(time.Millisecond)))
	}
	for _, other := range c.active {
		if other.context.Err() == nil {
			other.overlaps = append(other.overlaps, v)
		}
	}
	c.active = append(c.active, v)
}

// answered notes what a send was told, before finish is called.
func (v *sight) answered(a *answer, whole bool, shouldRetry profile.ShouldRetry) {
	v.status, v.wait = a.status, a.header.Get("Retry-After")
	v.whole = whole && v.context.Err() == nil
	v.advised = shouldRetry.Header != "" && a.header.Get(shouldRetry.Header) == shouldRetry.No
}

// finish notes that the server is done with a send. Only then is it known
// whether the client had left before it sent again.
func (w *watch) finish(x *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := x.seen
	c := w.keys[v.key]
	if v.done || c == nil {
		return
	}
	v.done, v.ended = true, time.Now()
	c.active = slices.DeleteFunc(c.active, func(other *sight) bool { return other == v })
	for _, later := range v.overlaps {
		if v.whole || v.ended.Sub(later.begun) > abandonSlack {
			w.violated(ruleNoOverlap, v.key, "sent while an earlier send was being handled and its client was waiting")
		}
	}
	if !v.whole {
		c.uncertain = true
		return
	}
	c.notBefore, _ = until(v.wait, v.ended)
	if c.final == "" && v.isFinal(c.uncertain) {
		c.final = "status " + strconv.Itoa(v.status)
	}
}

// isFinal reports whether the answer settles the operation, so that asking
// again is waste. After a lost answer a refusal settles nothing.
func (v *sight) isFinal(uncertain bool) bool {
	switch {
	case v.status >= 200 && v.status < 300, v.advised:
		return true
	case v.status < 400 || v.status >= 500 || uncertain:
		return false
	}
	again := []int{401, 403, 407, 408, 409, 421, 423, 424, 425, 429}
	return !slices.Contains(again, v.status)
}

// violated writes into the ledger; the lock is held.
func (w *watch) violated(rule, key, detail string) {
	w.ledger.violated(Violation{Rule: rule, Key: key, Detail: detail})
}

// until reads a Retry-After: seconds, or any of the three dates of RFC 9110.
func until(text string, from time.Time) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return from.Add(time.Duration(seconds) * time.Second), true
	}
	date, err := http.ParseTime(text)
	return date, err == nil
}
