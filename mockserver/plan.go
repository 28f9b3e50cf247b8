package mockserver

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// plan chooses the fault of each send. It is safe for concurrent use.
type plan struct {
	cfg *Config

	mu         sync.Mutex
	global     []Fault        // what is left of Script and of Inject
	byKey      map[string]int // sends so far, per key
	operations map[string]int // order of first appearance
	byOp       map[string]int // sends so far, per operation
}

func newPlan(cfg *Config) *plan {
	p := &plan{cfg: cfg}
	p.reset()
	return p
}

// reset starts all scripts again.
func (p *plan) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.global = append([]Fault(nil), p.cfg.Script...)
	p.byKey, p.byOp, p.operations = map[string]int{}, map[string]int{}, map[string]int{}
}

// inject appends to the global script.
func (p *plan) inject(faults []Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.global = append(p.global, faults...)
}

// next is the fault for a send of this key and operation. The mix draws by
// seed, key and number of the send, and not by order of arrival, so that
// concurrency does not change what a key meets.
func (p *plan) next(key, operation string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
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

// scenario is the script of an operation, by order of first appearance.
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

// draw is a number in [0, 1) that depends on its arguments only.
func draw(seed uint64, key string, nth int) float64 {
	text := binary.BigEndian.AppendUint64(nil, seed)
	text = binary.BigEndian.AppendUint64(text, uint64(nth))
	sum := sha256.Sum256(append(text, key...))
	source := rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16]))
	return rand.New(source).Float64()
}
