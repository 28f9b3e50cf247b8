package report

import (
	"fmt"
	"slices"
	"strings"
)

// Summary counts cases by verdict. All seven are always written.
type Summary struct {
	Pass         int `json:"pass"`         // the verdict Pass
	Fail         int `json:"fail"`         // the verdict Fail
	Warn         int `json:"warn"`         // the verdict Warn
	Seen         int `json:"seen"`         // the verdict Seen
	Skip         int `json:"skip"`         // the verdict Skip
	Inconclusive int `json:"inconclusive"` // the verdict Inconclusive
	Error        int `json:"error"`        // the verdict Error, and invalid verdicts
}

// Summarize counts the cases by verdict. An invalid verdict is an Error.
func Summarize(cases []Case) Summary {
	var s Summary
	for i := range cases {
		*s.counter(cases[i].Verdict)++
	}
	return s
}

// Count returns the number of cases with the verdict.
func (s Summary) Count(v Verdict) int { return *s.counter(v) }

// Total returns the number of cases.
func (s Summary) Total() int {
	return s.Pass + s.Fail + s.Warn + s.Seen + s.Skip + s.Inconclusive + s.Error
}

// Judged counts the cases with verdict Pass, Fail or Warn. It does not count Seen,
// Skip, Inconclusive and Error: these never pass.
func (s Summary) Judged() int { return s.Pass + s.Fail + s.Warn }

// counter returns the counter of a verdict. An invalid verdict counts as an Error.
func (s *Summary) counter(v Verdict) *int {
	switch v {
	case Pass:
		return &s.Pass
	case Fail:
		return &s.Fail
	case Warn:
		return &s.Warn
	case Seen:
		return &s.Seen
	case Skip:
		return &s.Skip
	case Inconclusive:
		return &s.Inconclusive
	}
	return &s.Error
}

// Decidable returns the number of cases tried on the target: the judged ones, and
// those without an end (Inconclusive and Error).
func (s Summary) Decidable() int { return s.Judged() + s.Inconclusive + s.Error }

// Grade is one level's share of a summary.
type Grade struct {
	Level   Level // its cases only
	Summary       // of those cases
}

// String returns the grade in words, such as "8 of 13, 5 inconclusive, 2 skipped": how many passed of those that were tried, and what became of the others.
func (g Grade) String() string {
	var parts []string
	if g.Decidable() > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d", g.Pass, g.Decidable()))
	}
	for _, other := range []struct {
		n    int
		word string
	}{
		{g.Fail, "failed"}, {g.Warn, "warned about"}, {g.Inconclusive, "inconclusive"}, {g.Error, "in error"}, {g.Seen, "seen"}, {g.Skip, "skipped"},
	} {
		if other.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", other.n, other.word))
		}
	}
	return strings.Join(parts, ", ")
}

// Undecided lists the ids of safety cases tried without a decision, on the whole case or
// on a part. Skipped cases are not among them: their needs were not declared.
func Undecided(cases []Case) []string {
	var ids []string
	for i := range cases {
		c := &cases[i]
		open := slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Verdict == Inconclusive })
		if c.Level == Safety && (c.Verdict == Inconclusive || c.Verdict == Warn && open) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Grades counts the cases per level, heaviest first; levels without a case are
// left out.
func Grades(cases []Case) []Grade {
	var grades []Grade
	for _, level := range Levels() {
		var of []Case
		for i := range cases {
			if cases[i].Level == level {
				of = append(of, cases[i])
			}
		}
		if len(of) > 0 {
			grades = append(grades, Grade{Level: level, Summary: Summarize(of)})
		}
	}
	return grades
}

// Group is the cases of a report with one ID prefix.
type Group struct {
	Name    string // the ID prefix, before the slash
	Cases   []Case // in the order of the report
	Summary        // of those cases
}

// Groups splits the cases by their group, in order of first appearance.
func (r *Report) Groups() []Group {
	var groups []Group
	index := map[string]int{}
	for i := range r.Cases {
		name := r.Cases[i].Group()
		at, seen := index[name]
		if !seen {
			at = len(groups)
			index[name] = at
			groups = append(groups, Group{Name: name})
		}
		groups[at].Cases = append(groups[at].Cases, r.Cases[i])
	}
	for i := range groups {
		groups[i].Summary = Summarize(groups[i].Cases)
	}
	return groups
}
