package mockserver

import (
	"errors"
	"fmt"
	"maps"
	"sync"
)

// Count is what happened under one key.
type Count struct {
	// Sends is how many requests with the key reached the server whole, those
	// that a fault delivered a second time among them.
	Sends int `json:"sends"`
	// Effects is how often the server did something about them.
	Effects int `json:"effects"`
}

// Violation is one rule for clients that was broken. It is an error, so that
// Err can join several.
type Violation struct {
	// Rule is the id of the rule: one of the constants from RuleKeyValid on.
	Rule string `json:"rule"`
	// Key is the idempotency key; it is empty where a request carried none.
	Key string `json:"key"`
	// Detail says what was seen; it holds no body and no credential.
	Detail string `json:"detail"`
}

// Error is the violation in one line.
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

// Ledger counts what reached the server and what it did. It is safe for
// concurrent use. A key is counted as the client sent it, whatever the server's
// Bug makes of it; the principal makes no difference here.
type Ledger struct {
	mu         sync.Mutex
	sends      int
	effects    int
	keys       map[string]Count
	references map[string]int
	violations []Violation
}

func newLedger() *Ledger {
	l := &Ledger{}
	l.reset()
	return l
}

// Sends is how many requests with this key reached the server whole. An
// invalid key is not counted under itself.
func (l *Ledger) Sends(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[key].Sends
}

// Effects is how often the server did what requests with this key asked for.
func (l *Ledger) Effects(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[key].Effects
}

// Snapshot copies the ledger. Its totals include requests without a key.
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

// send counts a request; key is empty if it has none, or an invalid one.
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

// effect counts an effect; key and reference are empty if the request had none.
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

// violated notes a violation, up to violationsMax.
func (l *Ledger) violated(v Violation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.violations) < violationsMax {
		l.violations = append(l.violations, v)
	}
}

// witness is the effects of one reference, and of all.
func (l *Ledger) witness(reference string) (count, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.references[reference], l.effects
}

// EffectsByReference counts the effects of each operation that
// Config.OperationPointer (empty: /reference) finds in a body. The caller owns
// the map.
func (l *Ledger) EffectsByReference() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.references)
}

// err joins the violations; nil if there are none.
func (l *Ledger) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]error, len(l.violations))
	for i, v := range l.violations {
		all[i] = v
	}
	return errors.Join(all...)
}

func (l *Ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sends, l.effects, l.violations = 0, 0, nil
	l.keys, l.references = map[string]Count{}, map[string]int{}
}
