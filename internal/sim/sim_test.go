package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

// The flags, behind -args.
var (
	oneSeed    = flag.Uint64("seed", 0, "run only this seed; 0: all from -first on")
	repeat     = flag.Int("repeat", 20, "how often a seed of its own, and one that failed, is run")
	firstSeed  = flag.Uint64("first", 1, "the first seed")
	operations = flag.Int("operations", testrun.N(200, 2_000), "how many operations to simulate")
	orders     = flag.Int("orders", 200, "how many operations a seed has")
	trace      = flag.Bool("trace", false, "print the history of a seed of its own, whatever comes of it")
)

// TestSim plays seeds and holds them to the invariants. With -seed it plays one seed
// -repeat times and says how often it fails.
func TestSim(t *testing.T) {
	t.Parallel()
	if *oneSeed != 0 {
		examine(t, *oneSeed, Options{})
		return
	}
	began := time.Now()
	var sum tally
	var next atomic.Uint64
	next.Store(*firstSeed - 1)
	t.Run("seeds", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for sum.operations() < *operations && !t.Failed() {
					seed := next.Add(1)
					res := Run(t, NewPlan(seed, *orders), Options{})
					sum.add(res)
					if len(res.Failures) > 0 {
						t.Errorf("seed %d: %v", seed, res.Failures[0])
						examine(t, seed, Options{})
					}
				}
			})
		}
	})
	t.Logf("%v in %v", &sum, time.Since(began).Round(time.Second))
}

// examine runs one seed many times and says how often it fails. Where that is at
// least half, it prints the history of the fewest steps that fail so.
func examine(t *testing.T, seed uint64, opts Options) {
	t.Helper()
	plan := NewPlan(seed, *orders)
	opts.Trace = *trace
	failed, last := Fails(t, plan, opts, *repeat)
	t.Logf("seed %d fails in %d of %d runs; again: go test ./internal/sim -run 'TestSim$' -args -seed %d -orders %d -repeat 50",
		seed, failed, *repeat, seed, *orders)
	if *trace {
		fmt.Fprintln(os.Stdout, strings.Join(last.History, "\n"))
	}
	if failed == 0 {
		return
	}
	for _, f := range last.Failures {
		t.Errorf("seed %d: %v", seed, f)
	}
	if 2*failed < *repeat {
		return
	}
	plan = Shrink(t, plan, Options{Bug: opts.Bug}, last.Failures[0].Rule, 400)
	for range *repeat {
		res := Run(t, plan, Options{Bug: opts.Bug, Trace: true})
		if len(res.Failures) > 0 {
			t.Logf("a history of %d steps that fails so:\n%v%s", len(plan.Steps), plan, strings.Join(res.History, "\n"))
			return
		}
	}
}

// tally adds up runs.
type tally struct {
	mu    sync.Mutex
	total Result
	seeds int
}

func (s *tally) add(res Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds++
	s.total.Operations += res.Operations
	s.total.Calls += res.Calls
	s.total.Sends += res.Sends
	s.total.Effects += res.Effects
	s.total.Early += res.Early
	s.total.Cut += res.Cut
	s.total.Again += res.Again
}

func (s *tally) operations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total.Operations
}

// String is the sums in one line.
func (s *tally) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d seeds, %d operations, %d calls, %d sends, %d effects; %d answers told early, %d of them cut off, %d given again",
		s.seeds, s.total.Operations, s.total.Calls, s.total.Sends, s.total.Effects, s.total.Early, s.total.Cut, s.total.Again)
}
