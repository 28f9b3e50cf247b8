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
	trial      *trial            // nil where no referee is at work
	whistle    *time.Timer       // ends the trial once it is quiet
	finished   chan struct{}
	over       bool
}

// career is one key as the clients have used it.
type career struct {
	print     digest
	active    []*sight
	uncertain bool      // a send has had no whole answer
	final     string    // the final answer that was given, "" for none
	notBefore time.Time // as the last Retry-After asked
}

// seen is what the server knows of a send when it arrives.
type seen struct {
	key       string // "" for none or an invalid one
	invalid   string // why the key is no good
	keyed     bool   // there is a key, good or not
	operation string
	method    string
	path      string
	print     digest
	context   context.Context
	begun     time.Time
}

// sight is one send as the server saw it.
type sight struct {
	seen
	overlaps []*sight // sends that came while this one was being handled

	// Set once the server is done with it.
	done       bool
	ended      time.Time
	status     int  // what was answered, 0 for nothing
	whole      bool // all of the answer was written to a client that was there
	cut        bool // it was cut off by the server
	wait       string
	advised    bool // the answer said not to try again
	replay     bool // it was marked as a replay
	mismatch   bool // it said that the key belongs to another request
	inProgress bool // it said that the first request is being handled
}

func newWatch(cfg *Config, ledger *Ledger) *watch {
	w := &watch{cfg: cfg, ledger: ledger, finished: make(chan struct{})}
	w.reset()
	return w
}

func (w *watch) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys, w.operations = map[string]*career{}, map[string]string{}
	w.trial = newTrial(w.cfg.Referee)
}

// begin notes a send and says what it breaks.
func (w *watch) begin(r *http.Request, k reading, body []byte) *sight {
	v := &sight{seen: seen{
		keyed: k.present, method: r.Method, path: r.URL.Path,
		print: requestDigest(r, body), context: r.Context(), begun: time.Now(),
	}}
	switch {
	case k.err != nil:
		v.invalid = k.err.Error()
	case k.present:
		v.key = k.key
	}
	v.operation = v.key
	if w.cfg.OperationPointer != "" {
		v.operation, _ = lookupText(body, w.cfg.OperationPointer)
	}
	w.ledger.send(v.key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.invalid != "" {
		w.violated(ruleKeyValid, "", v.invalid)
	}
	w.identify(v)
	if v.key != "" {
		w.examine(v)
	}
	if w.trial != nil {
		w.trial.note(v)
		w.rearm()
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
func (w *watch) examine(v *sight) {
	c := w.keys[v.key]
	if c == nil {
		c = &career{print: v.print}
		w.keys[v.key] = c
	}
	if c.print != v.print {
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
func (w *watch) answered(v *sight, a *answer, whole bool) {
	p := w.cfg.Profile
	v.status, v.wait = a.status, a.header.Get("Retry-After")
	v.whole = whole && v.context.Err() == nil
	v.advised = p.ShouldRetry.Header != "" && a.header.Get(p.ShouldRetry.Header) == p.ShouldRetry.No
	v.replay = a.replay || matchesAny(p.Replay, a)
	v.mismatch = matchesAny(p.Mismatch, a)
	v.inProgress = matchesAny(p.InProgress, a)
}

// finish notes that the server is done with a send. Only then is it known
// whether the client had left before it sent again.
func (w *watch) finish(v *sight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.done {
		return
	}
	v.done, v.ended = true, time.Now()
	if w.trial != nil {
		w.rearm()
	}
	c := w.keys[v.key]
	if c == nil {
		return
	}
	c.active = slices.DeleteFunc(c.active, func(other *sight) bool { return other == v })
	for range v.ignored() {
		w.violated(ruleNoOverlap, v.key, "sent while an earlier send was being handled and its client was waiting")
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

// ignored lists the sends that did not wait for this one, though its client was
// there.
func (v *sight) ignored() []*sight {
	var all []*sight
	for _, later := range v.overlaps {
		if v.whole || v.ended.Sub(later.begun) > abandonSlack {
			all = append(all, later)
		}
	}
	return all
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

// rearm waits for quiet anew; the lock is held.
func (w *watch) rearm() {
	if w.whistle != nil {
		w.whistle.Stop()
		w.whistle = nil
	}
	settled, seen := w.trial.settled()
	if !seen || w.over || w.trial.busy() {
		return
	}
	quiet := w.trial.referee.Quiet
	if !settled {
		quiet *= patience
	}
	w.whistle = time.AfterFunc(quiet, w.end)
}

// end closes finished, once.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.over = true
		close(w.finished)
	}
}

// stop ends what runs by itself.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.whistle != nil {
		w.whistle.Stop()
	}
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
