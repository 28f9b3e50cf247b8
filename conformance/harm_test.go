package conformance_test

import (
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
)

// Every harm has a level, an impact and a fix, and the cases that speak of one exist.
func TestHarmTables(t *testing.T) {
	t.Parallel()
	all := conformance.Consequences()
	if len(all) != 7 {
		t.Errorf("got %d harms, want 7", len(all))
	}
	for name, c := range all {
		if slices.Contains(c[:], "") {
			t.Errorf("%s: level, impact or fix is missing: %q", name, c)
		}
	}
	for name, ids := range conformance.TellsOf() {
		if _, known := all[name]; !known {
			t.Errorf("%s is no harm", name)
		}
		for _, id := range ids {
			if _, found := conformance.Find(id); !found {
				t.Errorf("%s: %s is no case", name, id)
			}
		}
	}
}

// What a finding weighs, and what it says, follows from the harm and the verdict.
func TestConsequenceOf(t *testing.T) {
	t.Parallel()
	for _, w := range []struct {
		id, harm string
		verdict  conformance.Verdict
		level    conformance.Level
		own      bool // it says what the case says
	}{
		{"inflight/once", "", conformance.VerdictFail, conformance.LevelSafety, true},
		{"inflight/once", "twice", conformance.VerdictFail, conformance.LevelSafety, true},
		{"inflight/once", "stuck", conformance.VerdictFail, conformance.LevelLiveness, false},
		{"conflict/nested-differs", "twice", conformance.VerdictFail, conformance.LevelSafety, false},
		{"conflict/nested-differs", "", conformance.VerdictWarn, conformance.LevelShould, true},
		{"outcome/corrected-body", "stuck", conformance.VerdictFail, conformance.LevelLiveness, false},
		{"inflight/status-or-wait", "", conformance.VerdictFail, conformance.LevelMust, true}, // no advice
		{"key/hostile-names", "errored", conformance.VerdictWarn, conformance.LevelShould, false},
		{"outcome/5xx", "", conformance.VerdictFail, conformance.LevelPolicy, true},
	} {
		c, _ := conformance.Find(w.id)
		level, impact := c.ConsequenceOf(w.harm, w.verdict)
		if level != w.level || (impact == c.Impact) != w.own {
			t.Errorf("%s, %q, %s: got level %s and %q, want %s, its own words: %t", w.id, w.harm, w.verdict, level, impact, w.level, w.own)
		}
	}
}

// A case knows how long it may take: one wait for a key that does not resolve, and
// more only where a window passes or the target is restarted.
func TestCaseLimit(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]time.Duration{
		"replay/answered":         75 * time.Second,
		"net/reset-vs-fin":        75 * time.Second,
		"time/not-before":         83 * time.Second,
		"inflight/burst":          145 * time.Second,
		"restart/replay-survives": 215 * time.Second,
	} {
		c, _ := conformance.Find(id)
		if got := c.Limit(conformance.Options{Window: 4 * time.Second}); got != want {
			t.Errorf("%s: got %v, want %v", id, got, want)
		}
	}
}
