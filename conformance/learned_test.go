package conformance_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
)

// A lesson is told as the verdict has it, and one that nobody saw is left out.
func TestLearned(t *testing.T) {
	t.Parallel()
	rep := conformance.Report{WayIn: "--key-quoted", Cases: []conformance.Result{
		{ID: "conflict/not-silent", Verdict: conformance.VerdictPass},
		{ID: "scope/other-query", Verdict: conformance.VerdictSeen, Actual: "the query belongs to it"},
		{ID: "scope/other-path-not-answered", Verdict: conformance.VerdictFail, Actual: "201"},
		{ID: "outcome/5xx", Verdict: conformance.VerdictSkip, Reason: "no flag"},
		{ID: "replay/marker", Verdict: conformance.VerdictInconclusive, Reason: "nothing"},
	}}
	var got []string
	for _, l := range rep.Learned() {
		got = append(got, fmt.Sprint(l.Topic, " ", l.Text, " by ", l.Source))
	}
	want := []string{
		"takes operations with --key-quoted by probe",
		"compares the body: another one is not answered as the first by conflict/not-silent",
		"compares not the path: 201 by scope/other-path-not-answered",
		"compares the query belongs to it by scope/other-query",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Every lesson is a case's.
func TestLessons(t *testing.T) {
	t.Parallel()
	for _, id := range conformance.LessonIDs() {
		if _, found := conformance.Find(id); !found {
			t.Errorf("%s is no case", id)
		}
	}
}
