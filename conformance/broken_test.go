package conformance_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/bugs"
)

// The flags of TestBroken. Without any of them each broken server is judged in virtual time, with two seeds in CI and with
// one elsewhere; with more than one seed each is judged once more with its cases one by one.
//
// With -named it is judged by the cases that name it and by what those depend on,
// which is quick enough for many seeds:
//
//	go test ./conformance -run TestBroken -args -named -seeds 20
var (
	seedsFlag = flag.Int("seeds", testrun.N(1, 2), "with how many seeds each broken server is judged, its cases beside each other")
	namedFlag = flag.Bool("named", false, "judge by the cases that name the broken server, and by what those depend on")
	bugFlag   = flag.String("bug", "*", "which broken servers are judged, with * for any characters")
)

// broken is a server with one bug, and what the suite has to say of it. Nothing
// else may be said.
type broken struct {
	name, about string
	// want lists the cases that fail (behind ? warn, behind ~ are inconclusive)
	// where effects are counted, and blind where they are only inferred.
	want, blind string
	// why says for what reason nothing is seen, or not more.
	why string
	// names are the cases that were made for the bug. With -named they are run.
	names []string
	// start serves it until the test ends, and gives the options to judge it by.
	start func(t *testing.T) conformance.Options
}

// allBroken are the bugs of the mock and the flawed samples.
func allBroken() []broken { return append(mockBugs(), samples()...) }

func mockBugs() []broken {
	var all []broken
	rows := sights()
	for _, bug := range bugs.All() {
		s := rows[bug.Name]
		names := bug.Cases
		if s.owned != "" {
			names = nil // they see nothing over HTTP
		}
		all = append(all, broken{
			name: bug.Name, about: bug.Description, want: s.counted, blind: s.inferred, why: s.why, names: names,
			start: func(t *testing.T) conformance.Options { return s.start(t, bug.Name) },
		})
	}
	return all
}

func samples() []broken {
	var all []broken
	for _, f := range flaws() {
		b := broken{name: f.name, about: f.about, want: f.want, blind: f.blind, names: ids(f.want), start: f.start}
		if f.blind == "-" {
			b.blind, b.why = "", hiddenBug
		}
		all = append(all, b)
	}
	return all
}

// ids are the cases of a list of verdicts.
func ids(verdicts string) []string {
	var all []string
	for id := range strings.FieldsSeq(verdicts) {
		all = append(all, strings.TrimLeft(id, "?~"))
	}
	return all
}

// start serves the bug of the mock.
func (s sight) start(t *testing.T, bug string) conformance.Options {
	cfg := mockserver.Config{Bug: bug, Profile: releasing(), Window: s.window}
	url := start(t, cfg)
	o := options(url, releasing())
	o.AnswerTimeout, o.EffectWait, o.Window = 2*time.Second, 60*time.Millisecond, s.window
	if s.change != nil {
		s.change(&o, url)
	}
	return o
}

// start serves the flawed sample.
func (f flaw) start(t *testing.T) conformance.Options {
	f.c.updates = true
	_, url := newSample(t, f.c, f.q)
	o := sampleOptions(url)
	o.Profile = f.c.declare()
	if f.change != nil {
		f.change(&o)
	}
	return o
}

// trying is one run that judges a broken server.
type trying struct {
	broken
	counted  bool
	seed     uint64
	parallel int
}

// Each broken server is found by exactly the cases that are named for it, whatever
// the seed, with a witness and without one, and each finding has its evidence.
func TestBroken(t *testing.T) {
	t.Parallel()
	var all []trying
	for _, b := range some(allBroken()) {
		if !conformance.GlobMatch(*bugFlag, b.name) || *namedFlag && len(b.names) == 0 {
			continue
		}
		for seed := range uint64(*seedsFlag) {
			all = append(all, trying{b, true, seed + 1, 16}, trying{b, false, seed + 1, 16})
		}
		if *seedsFlag > 1 && !*namedFlag {
			all = append(all, trying{b, true, 1, 1}, trying{b, false, 1, 1})
		}
	}
	if len(all) == 0 {
		t.Errorf("-bug %q matches no broken server", *bugFlag)
	}
	t.Logf("%d runs", len(all))
	wrong := make([]string, len(all))
	virtually(t, all, func(t *testing.T, i int, one trying) { wrong[i] = one.judge(t) })
	// Some bugs are a matter of milliseconds, so that a busy machine shows another case or one more. Such a server is
	// judged twice more, without others beside it, and then there is no excuse.
	for i, one := range all {
		if wrong[i] == "" {
			continue
		}
		t.Logf("judged again, alone: %s", wrong[i])
		for range 2 {
			virtually(t, []trying{one}, func(t *testing.T, _ int, one trying) {
				if again := one.judge(t); again != "" {
					t.Error(again)
				}
			})
		}
	}
}

// judge runs the cases, again where an overlap did not come about, which on a busy
// machine is no verdict, and compares. It returns what is wrong with the verdicts.
func (b *trying) judge(t *testing.T) string {
	o := b.start(t)
	o.Seed = b.seed
	o.Parallel = min(b.parallel, max(o.Parallel, 1))
	want := parseVerdicts(b.want)
	if !b.counted {
		o.Witness, want = "", parseVerdicts(b.blind)
	}
	if *namedFlag {
		o.Run = withGates(b.names)
		for id := range want {
			if !slices.Contains(o.Run, id) {
				delete(want, id)
			}
		}
	}
	var rep *conformance.Report
	var got map[string]conformance.Verdict
	for range 3 {
		rep = run(t, o)
		if got = wrong(rep); !undecided(got, want) {
			break
		}
		o.Hold *= 2
	}
	if list(got) != list(want) {
		return fmt.Sprintf("%s (%s), counted %v, seed %d, %d at once:\n got %s\nwant %s\n%s", b.name, b.about, b.counted, b.seed, b.parallel, list(got), list(want), text(rep))
	}
	for id, verdict := range got {
		checkEvidence(t, b.name, find(t, rep, id), verdict)
	}
	return ""
}

// undecided reports whether a case was not decided that should have been.
func undecided(got, want map[string]conformance.Verdict) bool {
	for id, verdict := range got {
		open := verdict == conformance.VerdictInconclusive || verdict == conformance.VerdictError
		if open && want[id] != verdict {
			return true
		}
	}
	return false
}

// withGates are the cases with all that they depend on.
func withGates(ids []string) []string {
	var all []string
	for _, id := range ids {
		c, _ := conformance.Find(id)
		for _, other := range append(withGates(c.After), id) {
			if !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	return all
}

// checkEvidence looks whether a finding says what was expected and seen, shows the
// exchanges, and how often it failed.
func checkEvidence(t *testing.T, name string, c conformance.Result, verdict conformance.Verdict) {
	if len(c.Exchanges) == 0 {
		t.Errorf("%s: %s shows no exchange: %+v", name, c.ID, c)
	}
	if verdict == conformance.VerdictInconclusive {
		return
	}
	if c.Expected == "" || c.Actual == "" || !shown(&c) {
		t.Errorf("%s: %s has no evidence: %+v", name, c.ID, c)
	}
	if verdict == conformance.VerdictFail && !strings.HasPrefix(c.Odds, "failed ") {
		t.Errorf("%s: %s: got odds %q, want how often it failed", name, c.ID, c.Odds)
	}
}

// shown reports whether exchanges are marked as what shows the finding.
func shown(c *conformance.Result) bool {
	return slices.ContainsFunc(c.Exchanges, func(x conformance.Exchange) bool { return x.Shows })
}

// Every bug of the catalogue has a row here, is named by a case that finds it, or
// has a reason why none does; and every row has a bug.
func TestEveryBugIsNamed(t *testing.T) {
	t.Parallel()
	rows := sights()
	for _, bug := range bugs.All() {
		s, known := rows[bug.Name]
		delete(rows, bug.Name)
		found := append(ids(s.counted), ids(s.owned)...)
		switch {
		case !known:
			t.Errorf("%s is not judged: it has no row", bug.Name)
		case len(bug.Cases) == 0 && s.why == "":
			t.Errorf("no case names %s, and there is no reason why", bug.Name)
		case len(found) == 0 && s.why == "":
			t.Errorf("nothing is seen of %s, and there is no reason why", bug.Name)
		}
		for _, id := range bug.Cases {
			if c, _ := conformance.Find(id); c.Level != conformance.LevelObserve && !slices.Contains(found, id) {
				t.Errorf("the catalogue says that %s finds %s, and the row does not", id, bug.Name)
			}
		}
	}
	for name := range rows {
		t.Errorf("the mock has no bug %s", name)
	}
}
