package conformance_test

import (
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
)

// The exit status tells a clean run from one that did not decide: a safety case
// without a verdict never ends in 0.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	type result = conformance.Result
	safety := func(v conformance.Verdict) result {
		return result{ID: "a/safety", Level: conformance.LevelSafety, Verdict: v}
	}
	should := func(v conformance.Verdict) result {
		return result{ID: "b/should", Level: conformance.LevelShould, Verdict: v}
	}
	half := safety(conformance.VerdictWarn)
	half.Findings = []conformance.Finding{{Verdict: conformance.VerdictInconclusive}, {Verdict: conformance.VerdictWarn}}
	for _, c := range []struct {
		name  string
		cut   bool
		cases []result
		want  int
	}{
		{"nothing", false, nil, 2},
		{"all skipped", false, []result{safety(conformance.VerdictSkip)}, 2},
		{"passes", false, []result{safety(conformance.VerdictPass), should(conformance.VerdictWarn)}, 0},
		{"a failure", false, []result{safety(conformance.VerdictFail), should(conformance.VerdictPass)}, 1},
		{"an error outranks it", false, []result{safety(conformance.VerdictFail), should(conformance.VerdictError)}, 3},
		{"safety undecided", false, []result{safety(conformance.VerdictInconclusive), should(conformance.VerdictPass)}, 4},
		{"safety half decided", false, []result{half}, 4},
		{"only a Should undecided", false, []result{safety(conformance.VerdictPass), should(conformance.VerdictInconclusive)}, 0},
		{"cut short", true, []result{safety(conformance.VerdictPass)}, 4},
		{"a failure outranks what is undecided", true, []result{safety(conformance.VerdictInconclusive), should(conformance.VerdictFail)}, 1},
	} {
		rep := &conformance.Report{Cases: c.cases, Cut: c.cut}
		rep.Summary = conformance.Summarize(c.cases)
		if got := rep.ExitStatus(); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
	rep := &conformance.Report{Cases: []result{safety(conformance.VerdictInconclusive), should(conformance.VerdictInconclusive)}}
	if got := rep.Undecided(); !slices.Equal(got, []string{"a/safety"}) {
		t.Errorf("Undecided: got %v, want the safety case alone", got)
	}
}
