package mutants

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

var (
	run   = flag.Bool("mutants", false, "run each mutant against the tests, and each that they do not find against the search")
	from  = flag.Int("from", 1, "the first mutant")
	until = flag.Int("until", 1<<30, "the last mutant")
	most  = flag.Int("most", 20000, "the most states of each search; 0 for no search")
	third = flag.Int("third", 0, "1, 2 or 3: this third of the mutants alone; 0: all, and in the gate the third of the day")
	table = flag.String("table", "", "a file that gets the survivors, a line each")
)

// equivalents are the mutants that change no decision, by file and condition.
var equivalents = map[string]string{
	"operation/sending.go boundary: left > 0":      "a pause of no time and the least pause, at the very end of a window",
	"acts/seen.go negated: rec.LeaseOwner != \"\"": "the digest of each record is another one, and equal records still have equal digests",
}

// TestMutants builds the packages with all their mutants, whose tests pass while none is on. In the gate each third is switched on, another one each day, and the
// tests of its own package find each but the equivalents. With -mutants, those that they do not find are run against the search, too.
func TestMutants(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log("short: nothing is built")
		return
	}
	b := build(t)
	for _, name := range packages {
		if out, err := b.tests(t, name, 0); err != nil {
			t.Fatalf("no mutant is on, and the tests of %s fail: %v\n%s", name, err, out)
		}
	}
	switch {
	case !*run && testrun.N(0, 1) == 0:
		t.Logf("%d mutants", len(b.all))
		return
	case !*run:
		*most = 0
		if *third == 0 {
			*third = 1 + time.Now().YearDay()%thirds
		}
	}
	all := *from == 1 && *until > len(b.all) && *third == 0
	left := maps.Clone(equivalents)
	for _, id := range b.judgeAll(t) {
		name := b.files[id-1] + " " + b.all[id-1].Kind + ": " + b.all[id-1].Text
		if equivalents[name] == "" {
			t.Errorf("%s: no test finds it, and it is not known as equivalent", b.line(id))
		}
		delete(left, name)
	}
	for name := range left {
		if all {
			t.Errorf("%s: it is known as equivalent, and the tests find it, or it is gone", name)
		}
	}
}

// thirds is the number of parts of the mutants for the gate, a part a day: all of them take two minutes and more.
const thirds = 3

// packages are the packages with mutants. Each has a folder of its name.
var packages = []string{"operation", "intent", "acts"}

// folder returns the folder of a package.
func folder(name string) string { return filepath.Join("..", "..", name) }

// built is the packages with all mutants.
type built struct {
	all   []Mutant
	files []string // of each mutant: package and file
	dir   string   // of the binaries
}

// build instruments all sources of the packages, and builds their tests and the search.
func build(t *testing.T) *built {
	t.Helper()
	b := &built{dir: t.TempDir()}
	replace := map[string]string{}
	for _, name := range packages {
		b.instrument(t, name, replace)
	}
	entries, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	list := filepath.Join(b.dir, "overlay.json")
	if err == nil {
		err = os.WriteFile(list, entries, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(packages, search) {
		if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", list, "-o", b.binary(name), folder(name)).CombinedOutput(); err != nil {
			t.Fatalf("go test -c: %v\n%s", err, out)
		}
	}
	return b
}

// search is the package of the search.
const search = "operation/explore"

// binary returns the path of a package's tests.
func (b *built) binary(name string) string { return filepath.Join(b.dir, filepath.Base(name)+".test") }

// instrument writes the sources of a package with their mutants, and notes them in replace.
func (b *built) instrument(t *testing.T, name string, replace map[string]string) {
	t.Helper()
	root, err := filepath.Abs(folder(name))
	if err != nil {
		t.Fatal(err)
	}
	put := func(path, text string) {
		replace[path] = filepath.Join(b.dir, name+"_"+filepath.Base(path))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(root, "mutant_switch.go"), Switch(name))
	sources, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("%s: %d sources, %v", name, len(sources), err)
	}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, more, err := Instrument(path, source, len(b.all)+1)
		if err != nil {
			t.Fatal(err)
		}
		for range more {
			b.files = append(b.files, name+"/"+filepath.Base(path))
		}
		b.all = append(b.all, more...)
		put(path, text)
	}
}

// tests runs the tests of a package with a mutant.
func (b *built) tests(t *testing.T, name string, id int) (out []byte, err error) {
	return b.exec(t, id, name, "-test.failfast")
}

// exec runs the tests of a package with a mutant. One that takes longer than its time counts as found, since it no longer ends.
func (b *built) exec(t *testing.T, id int, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.binary(name), args...)
	cmd.Dir = folder(name)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", Variable, id))
	return cmd.CombinedOutput()
}

// judgeAll runs each mutant, and tells how many are found by what. It returns those that nothing finds.
func (b *built) judgeAll(t *testing.T) (survivors []int) {
	var mu sync.Mutex
	var byTests, bySearch int
	work := make(chan int)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for id := range work {
				found := b.found(t, id)
				mu.Lock()
				switch found {
				case "tests":
					byTests++
				case "search":
					bySearch++
					t.Logf("only by search: %s", b.line(id))
				default:
					survivors = append(survivors, id)
					t.Logf("survives: %s", b.line(id))
				}
				mu.Unlock()
			}
		})
	}
	for id := max(*from, 1); id <= min(*until, len(b.all)); id++ {
		if *third == 0 || id%thirds == *third-1 {
			work <- id
		}
	}
	close(work)
	workers.Wait()
	t.Logf("%d mutants: %d found by the tests, %d only by the search, %d survive", byTests+bySearch+len(survivors), byTests, bySearch, len(survivors))
	if *table != "" {
		var lines strings.Builder
		for _, id := range survivors {
			lines.WriteString(b.line(id) + "\n")
		}
		if err := os.WriteFile(*table, []byte(lines.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
	return survivors
}

// found says what finds a mutant: "tests", "search", or "".
func (b *built) found(t *testing.T, id int) string {
	name, _, _ := strings.Cut(b.files[id-1], "/")
	if _, err := b.tests(t, name, id); err != nil {
		return "tests"
	}
	if *most == 0 {
		return ""
	}
	if _, err := b.exec(t, id, search, "-test.run=^TestNoHistoryBreaks$", "-first", "-until", fmt.Sprint(*most)); err != nil {
		return "search"
	}
	return ""
}

// line names a mutant.
func (b *built) line(id int) string {
	m := b.all[id-1]
	return fmt.Sprintf("%d %s:%d %s: %s", m.ID, b.files[id-1], m.Line, m.Kind, m.Text)
}
