package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/bugs"
)

// seedsFlag judges every broken server with so many seeds beside each other, and
// once more with its cases one by one. One seed is what a gate has time for.
var seedsFlag = flag.Int("seeds", 1, "with how many seeds each broken server is judged")

// writeFlag writes the page that says which broken server is seen by which cases.
var writeFlag = flag.Bool("write", false, "write docs/conformance-bugs.md")

const bugsPage = "../docs/conformance-bugs.md"

// sight is what the suite says of a broken server: where effects are counted, and
// where they are only inferred from answers.
type sight struct{ counted, inferred string }

// hunted names what is seen of the bugs that the mock has beyond those in mutants,
// with a witness and without one. Nothing else may be seen.
func hunted() map[string]sight {
	both := func(list string) sight { return sight{list, list} }
	return map[string]sight{
		"authorised-unprotected":  both("replay/answered replay/effects-once"),
		"body-length-only":        both("conflict/not-silent"),
		"body-prefix-only":        both("?conflict/late-difference"),
		"chunked-unprotected":     both("net/chunked-equals-length"),
		"get-claims-key":          both("scope/head-options"),
		"key-as-number":           both("key/digits"),
		"key-url-decoded":         both("key/hostile-names"),
		"large-body-unprotected":  both("replay/large-body conflict/late-difference"),
		"non-ascii-dropped":       both("?key/non-ascii"),
		"numbers-rounded":         both("?conflict/large-numbers"),
		"other-route-unprotected": both("replay/second-path"),
		"principal-scheme-only":   both("scope/other-principal-not-answered"),
		"retry-after-garbage":     both("?inflight/retry-after-present"),
		"two-lines-joined":        both("?key/two-lines"),
		"replay-queues-again":     {counted: "replay/effects-once"},
		// What the answers show is a server that refuses; the witness shows the rest.
		"duplicate-executed-then-refused": {counted: "inflight/once"},
	}
}

// unseen says why a bug of the mock is not seen by the run of this test.
func unseen() map[string]string {
	return map[string]string{
		"crashed-after-effect":    "outcome/crash-effect shows it and judges nothing: whether a crash may execute again is the server's declared choice",
		"other-principal-refused": "to refuse a stranger is right; that the key is not the stranger's own is a choice",
		"other-query-answered":    "scope/other-query shows it and judges nothing",
		"patch-unprotected":       "the mock serves PATCH on what was made, and not where operations are sent; replay/other-method needs --other-method there",
		"restart-runs-again":      "it needs --restart-cmd",
		"action-unprotected":      "actions hold no reference, so that nobody counts their effects",
		"empty-body-unprotected":  "a request without a body holds no reference, so that nobody counts its effects",
	}
}

// Each bug beyond those of mutants is seen by exactly the cases that are named for
// it, with a witness and without one.
func TestHunted(t *testing.T) {
	t.Parallel()
	type judged struct {
		bug, want string
		counted   bool
	}
	var all []judged
	for bug, s := range hunted() {
		all = append(all, judged{bug, s.counted, true}, judged{bug, s.inferred, false})
	}
	slices.SortFunc(all, func(a, b judged) int { return strings.Compare(a.bug, b.bug) })
	beside(some(all), func(_ int, j judged) {
		for seed := range *seedsFlag {
			checkSight(t, j.bug, j.want, j.counted, uint64(seed+1), 16)
		}
		if *seedsFlag > 1 {
			checkSight(t, j.bug, j.want, j.counted, 1, 1)
		}
	})
}

func checkSight(t *testing.T, bug, want string, counted bool, seed uint64, parallel int) {
	p := releasing()
	o := options(start(t, mockserver.Config{Bug: bug, Profile: p}), p)
	o.AnswerTimeout, o.EffectWait, o.Seed, o.Parallel = 3*time.Second, 400*time.Millisecond, seed, parallel
	if !counted {
		o.Witness = ""
	}
	rep := runSure(t, o)
	if got := list(wrong(rep)); got != list(parseVerdicts(want)) {
		t.Errorf("%s, counted %v, seed %d, %d at once:\n got %s\nwant %s\n%s", bug, counted, seed, parallel, got, list(parseVerdicts(want)), text(rep))
	}
}

// The page says of every broken server by which cases it is seen, with a witness
// and without one, and is what the tables of these tests say.
func TestBugsPage(t *testing.T) {
	t.Parallel()
	page := bugsTable()
	if *writeFlag {
		if err := os.WriteFile(bugsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	standing, err := os.ReadFile(bugsPage)
	if err != nil || string(standing) != page {
		t.Errorf("%s is not what the tables say (%v); go test ./conformance -run TestBugsPage -write writes it", bugsPage, err)
	}
	if n := strings.Count(page, "\n| `"); n < 90 {
		t.Errorf("got %d broken servers on the page, want at least 90", n)
	}
}

func bugsTable() string {
	var b strings.Builder
	b.WriteString("# Broken servers, and what sees them\n\n" +
		"Each row is a server with one bug that the suite's own tests judge: exactly these cases fail (*warn* where it is said), with a witness that counts\n" +
		"effects and without one, where effects are inferred from the ids in answers. A dash means that nothing is seen. The servers of the first table are\n" +
		"`oncehttp mock --bug NAME`; those of the second are small servers of the tests. The page is generated: `go test ./conformance -run TestBugsPage -write`.\n\n" +
		"| bug | what the server does | with a witness | without |\n|---|---|---|---|\n")
	counted, blind, extra, why := mutants(), inferredMutants(), hunted(), unseen()
	for _, bug := range bugs.All() {
		switch s, more := extra[bug.Name]; {
		case more:
			row(&b, bug.Name, bug.Description, s.counted, s.inferred)
		case why[bug.Name] != "":
			fmt.Fprintf(&b, "| `%s` | %s | – | – (%s) |\n", bug.Name, bug.Description, why[bug.Name])
		case counted[bug.Name] != "":
			without, other := blind[bug.Name]
			if !other {
				without = counted[bug.Name]
			}
			row(&b, bug.Name, bug.Description, counted[bug.Name], without)
		}
	}
	b.WriteString("\n| sample | what the server does | with a witness | without |\n|---|---|---|---|\n")
	for _, f := range flaws() {
		row(&b, f.name, f.about, f.want, strings.TrimPrefix(f.blind, "-"))
	}
	return b.String()
}

func row(b *strings.Builder, name, about, counted, inferred string) {
	spell := func(verdicts string) string {
		var parts []string
		for id := range strings.FieldsSeq(verdicts) {
			switch name := strings.TrimLeft(id, "?~"); id[0] {
			case '?':
				parts = append(parts, name+" *warn*")
			case '~':
				parts = append(parts, name+" *open*")
			default:
				parts = append(parts, name)
			}
		}
		if len(parts) == 0 {
			return "–"
		}
		return strings.Join(parts, ", ")
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, about, spell(counted), spell(inferred))
}

// inferredMutants names what is seen of those of mutants without a witness, where
// that differs from what is seen with one.
func inferredMutants() map[string]string {
	return map[string]string{
		"replay-executes":    "",
		"released-on-abort":  "",
		"stored-after-write": "",
		"quoted-key-500":     "key/sf-string-accepted key/invalid-is-4xx ?key/empty-not-shared ?key/malformed-sf-rejected ~key/invalid-not-executed",
		"invalid-key-500":    "key/invalid-is-4xx key/two-lines key/5000-rejected-4xx ?key/empty-not-shared ?key/non-ascii ?key/malformed-sf-rejected ~key/invalid-not-executed",
		"mismatch-500":       "conflict/rejected-status ~conflict/not-executed ~inflight/other-body",
	}
}

// Without a witness a bug of mutants is seen by the same cases, or by those that
// are named for it; nothing that is right is blamed.
func TestMutantsInferred(t *testing.T) {
	t.Parallel()
	counted, blind := mutants(), inferredMutants()
	skip := []string{"store-too-small", "expires-early", "never-expires"} // they have tests of their own
	var names []string
	for name := range counted {
		if !slices.Contains(skip, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	beside(some(names), func(_ int, name string) {
		want, other := blind[name]
		if !other {
			want = counted[name]
		}
		checkSight(t, name, want, false, 7, 16)
	})
}
