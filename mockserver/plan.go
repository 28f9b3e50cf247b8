package mockserver

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// plan chooses the fault of each send. It is safe for concurrent use; mu guards
// the fields below it.
type plan struct {
	cfg *Config

	mu         sync.Mutex
	global     []Fault        // the rest of Script, and the faults of Inject
	byKey      map[string]int // sends so far, per key
	operations map[string]int // the number of each operation in order of appearance, from 0; with Scenarios only
	byOp       map[string]int // sends so far, per operation; with Scenarios only
}

// newPlan returns the plan of a configuration, the fault that each request meets, at its beginning.
func newPlan(cfg *Config) *plan {
	p := &plan{cfg: cfg}
	p.reset()
	return p
}

// reset starts the scripts of faults from their first fault again, in all and for each key and operation.
func (p *plan) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.global = append([]Fault(nil), p.cfg.Script...)
	p.byKey, p.byOp, p.operations = map[string]int{}, map[string]int{}, map[string]int{}
}

// inject appends faults to the global script, the one for requests of any key. The faults must be valid.
func (p *plan) inject(faults []Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.global = append(p.global, faults...)
}

// next returns the fault of the next send with this key and operation (empty: the key is the operation), and counts
// the send. The order is ByKey, Scenarios, the global script, Mix. Mix draws by seed, key and number of the send with
// the key, so that the order of concurrent sends changes nothing.
func (p *plan) next(key, operation string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	// no faults at all: sends need no count, which would grow with the keys
	if len(p.global)+len(p.cfg.ByKey)+len(p.cfg.Scenarios)+len(p.cfg.Mix) == 0 {
		return Fault{}
	}
	nth := p.byKey[key]
	p.byKey[key]++
	if operation == "" {
		operation = "key " + key
	}
	if script := p.cfg.ByKey[key]; nth < len(script) {
		return script[nth]
	}
	if script := p.scenario(operation); script != nil {
		nthOp := p.byOp[operation]
		p.byOp[operation]++
		if nthOp < len(script) {
			return script[nthOp]
		}
	}
	if len(p.global) > 0 {
		fault := p.global[0]
		p.global = p.global[1:]
		return fault
	}
	return p.cfg.Mix.at(draw(p.cfg.Seed, key, nth))
}

// scenario returns the script of faults for an operation; nil: there are no Scenarios, or this one has no faults. A script may be used up: the caller
// looks. Operations take the Scenarios in turn, by the order of their first requests; an unknown one gets the next number. The lock is held.
func (p *plan) scenario(operation string) []Fault {
	if len(p.cfg.Scenarios) == 0 {
		return nil
	}
	order, known := p.operations[operation]
	if !known {
		order = len(p.operations)
		p.operations[operation] = order
	}
	return p.cfg.Scenarios[order%len(p.cfg.Scenarios)]
}

// draw returns a number in [0, 1) that depends on its arguments only, to choose the fault of the nth send with a key: so the same run has the same
// faults.
func draw(seed uint64, key string, nth int) float64 {
	text := binary.BigEndian.AppendUint64(nil, seed)
	text = binary.BigEndian.AppendUint64(text, uint64(nth))
	sum := sha256.Sum256(append(text, key...))
	source := rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16]))
	return rand.New(source).Float64()
}
