package sim

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

var (
	buildBugs  = flag.Bool("bugs", false, "build and run the bugs that are put into the source, too")
	findOne    = flag.Bool("find", false, "TestFind plays seeds until one fails, and says which")
	writeTable = flag.String("table", "", "write the table of bugs into this file")
)

// allOperations reports whether each bug has to be found: in whole rounds, and by the commands that build bugs.
func allOperations() bool { return testrun.Whole() || *buildBugs || *findOne }

// bugOperations returns how many operations may pass until a bug is found. The table says after how many it was.
func bugOperations() int {
	if allOperations() {
		return 150_000
	}
	return 400
}

// found is the first violation that a bug led to.
type found struct {
	bug        Bug
	seed       uint64
	operations int // that were simulated until then; 0: it was not found
	what       string
}

// find plays seeds until one breaks an invariant.
func find(t *testing.T, bug Bug) found {
	f := found{bug: bug}
	done := 0
	for seed := uint64(1); done < bugOperations(); seed++ {
		if *findOne { // for who reads this of a process that a panic has ended
			fmt.Fprintf(os.Stderr, "playing seed %d until %d operations\n", seed, done+100)
		}
		res := Run(t, NewPlan(seed, 100), Options{Bug: bug})
		done += res.Operations
		if len(res.Failures) > 0 {
			f.seed, f.operations, f.what = seed, done, res.Failures[0].String()
			return f
		}
	}
	return f
}

// TestFind plays seeds on the source as it was built: see sourceBug.
func TestFind(t *testing.T) {
	t.Parallel()
	if !*findOne {
		return
	}
	if f := find(t, ""); f.operations > 0 {
		t.Logf("found by seed %d after %d operations: %s", f.seed, f.operations, f.what)
	}
}

// TestBugs puts the bugs in one at a time, and wants each found; most of them, where not all is tested.
func TestBugs(t *testing.T) {
	t.Parallel()
	all := Bugs()
	var seldom atomic.Int32
	t.Run("each", func(t *testing.T) {
		for _, bug := range all {
			t.Run(string(bug), func(t *testing.T) {
				t.Parallel()
				f := find(t, bug)
				if f.operations == 0 && !allOperations() {
					seldom.Add(1)
					t.Logf("not found in %d operations", bugOperations())
					return
				}
				wantFound(t, f)
			})
		}
	})
	if n := int(seldom.Load()); 2*n > len(all) {
		t.Errorf("%d of %d bugs were not found in %d operations, want half at most", n, len(all), bugOperations())
	}
}

// wantFound fails where a bug was not found, and keeps its line of the table.
func wantFound(t *testing.T, f found) {
	t.Helper()
	if f.operations == 0 {
		t.Errorf("%s: not found in %d operations", f.bug, bugOperations())
		return
	}
	t.Logf("%s: found by seed %d after %d operations: %s", f.bug, f.seed, f.operations, f.what)
	rows.Lock()
	defer rows.Unlock()
	rows.found = append(rows.found, f)
}

var rows struct {
	sync.Mutex
	found []found
}

// TestMain writes the table, if it is wanted, once all bugs were found.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && *writeTable != "" {
		if err := table(*writeTable, rows.found); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// The marks between which the table stands.
const (
	tableBegin = "<!-- the table of bugs: go test ./internal/sim -run Bugs -args -bugs -table ../../docs/reliability.md -->\n"
	tableEnd   = "<!-- the end of the table of bugs -->\n"
)

// table replaces the table in a file.
func table(path string, bugs []found) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the table of bugs", path)
	}
	slices.SortFunc(bugs, func(a, b found) int { return strings.Compare(string(a.bug), string(b.bug)) })
	var b strings.Builder
	b.WriteString("\n| bug | found after operations | seed | breaks invariant |\n|---|---|---|---|\n")
	for _, f := range bugs {
		rule, _, _ := strings.Cut(strings.TrimPrefix(f.what, "invariant "), " ")
		if strings.HasPrefix(f.what, "panic: ") {
			rule = "the client panics"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", f.bug, f.operations, f.seed, rule)
	}
	b.WriteString("\n")
	return os.WriteFile(path, []byte(before+tableBegin+b.String()+tableEnd+after), 0o644)
}
