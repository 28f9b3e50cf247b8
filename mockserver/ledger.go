package mockserver

import (
	"errors"
	"fmt"
	"maps"
	"sync"
)

// Count counts the sends and effects of one key.
type Count struct {
	// Sends is the number of requests with the key that reached the server
	// whole; a second delivery by a fault counts again.
	Sends int `json:"sends"`
	// Effects is the number of effects that they had.
	Effects int `json:"effects"`
}

// Violation is one breach of a rule for clients. It is an error, so that Err can
// join several.
type Violation struct {
	// Rule is the id of the rule: one of the constants from RuleKeyValid on.
	Rule string `json:"rule"`
	// Key is the idempotency key; empty: the request has none, or an invalid one.
	Key string `json:"key"`
	// Detail describes the breach; it holds no body and no credential.
	Detail string `json:"detail"`
}

// Error returns the violation in one line.
func (v Violation) Error() string {
	return fmt.Sprintf("mockserver: client broke %s with key %q: %s", v.Rule, v.Key, v.Detail)
}

// Snapshot is the ledger at one moment, in the form of GET /_ledger.
type Snapshot struct {
	// Sends is the total, with the requests without a key.
	Sends int `json:"sends"`
	// Effects is the total, with those of requests without a key.
	Effects int `json:"effects"`
	// Keys counts by key.
	Keys map[string]Count `json:"keys"`
	// Violations are the first 1000, in the order in which they were seen.
	Violations []Violation `json:"violations"`
}

// violationsMax bounds the list of violations; later ones are dropped.
const violationsMax = 1000

// Ledger counts the sends and effects of a server. It is safe for concurrent use.
// A key is counted as the client sent it, even if the server's Bug reads another
// one. Equal keys of different principals are counted together.
type Ledger struct {
	mu         sync.Mutex
	sends      int              // with the requests without a key
	effects    int              // with those of requests without a key
	keys       map[string]Count // valid keys only
	references map[string]int   // effects by Server.reference; "" is not counted
	violations []Violation      // at most violationsMax
}

// newLedger returns an empty ledger: the counts of requests, of their effects, and of rules that clients broke.
func newLedger() *Ledger {
	l := &Ledger{}
	l.reset()
	return l
}

// Sends returns the number of requests with this key that reached the server whole; 0 for an unknown key. A request
// with an invalid key counts for no key.
func (l *Ledger) Sends(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[key].Sends
}

// Effects returns the number of effects of requests with this key; 0 for an unknown key.
func (l *Ledger) Effects(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[key].Effects
}

// Snapshot returns a copy of the ledger; the caller owns it. Its totals include requests without a key.
func (l *Ledger) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Snapshot{Sends: l.sends, Effects: l.effects, Keys: make(map[string]Count, len(l.keys))}
	for key, count := range l.keys {
		s.Keys[key] = count
	}
	s.Violations = append([]Violation{}, l.violations...)
	return s
}

// send counts a request. key is empty if the request has none, or an invalid one.
func (l *Ledger) send(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sends++
	if key != "" {
		count := l.keys[key]
		count.Sends++
		l.keys[key] = count
	}
}

// effect counts an effect. An empty key or reference stands for a request without one: then only the total counts it.
func (l *Ledger) effect(key, reference string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects++
	if key != "" {
		count := l.keys[key]
		count.Effects++
		l.keys[key] = count
	}
	if reference != "" {
		l.references[reference]++
	}
}

// violated notes a rule that a client broke. Past violationsMax the note is dropped, to bound the memory.
func (l *Ledger) violated(v Violation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.violations) < violationsMax {
		l.violations = append(l.violations, v)
	}
}

// witness returns the number of effects of one operation, by its reference (0 for an unknown one), and of all requests. Tests ask it.
func (l *Ledger) witness(reference string) (count, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.references[reference], l.effects
}

// EffectsByReference returns the number of effects of each operation, by the value at Config.OperationPointer (empty:
// /reference) in the body. The caller owns the map.
func (l *Ledger) EffectsByReference() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.references)
}

// err returns all violations joined into one error, each a Violation; nil without any.
func (l *Ledger) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]error, len(l.violations))
	for i, v := range l.violations {
		all[i] = v
	}
	return errors.Join(all...)
}

// reset forgets all sends, effects and violations counted so far.
func (l *Ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sends, l.effects, l.violations = 0, 0, nil
	l.keys, l.references = map[string]Count{}, map[string]int{}
}
