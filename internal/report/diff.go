package report

import (
	"fmt"
	"io"
	"strings"
)

// Change is one case with different verdicts in two reports.
type Change struct {
	ID    string // of the case
	Level Level  // of the case in the newer report, or else in the older
	// Old and New are the verdicts; "" in a report without the case.
	Old, New Verdict
	// Rule and Actual are those of the newer report, or else of the older.
	Rule, Actual string
}

// Delta holds the changes from one report to the next. Each case is in one list
// at most, in the order of the newer report.
type Delta struct {
	// Broken fail now and did not before, new cases included.
	Broken []Change
	// Lost are safety cases with a pass before and no decision now: skipped, or
	// inconclusive. Nothing proves any more their rules to hold.
	Lost []Change
	// Fixed failed before and hold now (pass, warn or seen).
	Fixed []Change
	// Changed are all other cases with different verdicts. A failure merely
	// skipped now is among these: it is not fixed.
	Changed []Change
	// Added and Gone are cases of only one of the reports.
	Added, Gone []Change
	// Same counts the cases with the same verdict in both.
	Same int
	// Notes name obstacles to the comparison: another target, another
	// profile.
	Notes []string
}

// Diff compares two reports case by case, and returns the cases with another verdict now, by kind of change: broken, fixed, lost (a safety case not decided any
// more), changed otherwise, added or gone. Notes tell of differences between the runs, such as another target.
func Diff(old, now *Report) Delta {
	var d Delta
	before := make(map[string]*Case, len(old.Cases))
	for i := range old.Cases {
		before[old.Cases[i].ID] = &old.Cases[i]
	}
	for i := range now.Cases {
		c := &now.Cases[i]
		d.add(before[c.ID], c)
		delete(before, c.ID)
	}
	for i := range old.Cases {
		if c := &old.Cases[i]; before[c.ID] != nil {
			d.Gone = append(d.Gone, Change{ID: c.ID, Level: c.Level, Old: c.Verdict, Rule: c.Rule, Actual: c.Actual})
		}
	}
	for _, f := range [][3]string{
		{"kind", old.Kind, now.Kind}, {"target", old.Target, now.Target},
		{"profile", old.Profile, now.Profile}, {"suite", old.Suite, now.Suite},
	} {
		if f[1] != f[2] {
			d.Notes = append(d.Notes, fmt.Sprintf("%s differs: %s → %s", f[0], orNone(f[1]), orNone(f[2])))
		}
	}
	return d
}

// orNone returns s, or "none" if it is empty.
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// add puts a case of the newer report into the list of its kind of change. before is the same case of the older report; nil if there is none. A new failure is
// always Broken, also one of a new case. A safety case that passed, and is skipped or not decided now, is Lost.
func (d *Delta) add(before, c *Case) {
	change := Change{ID: c.ID, Level: c.Level, New: c.Verdict, Rule: c.Rule, Actual: message(c)}
	if before != nil {
		change.Old = before.Verdict
	}
	switch {
	case change.Old == change.New:
		d.Same++
	case change.New == Fail:
		d.Broken = append(d.Broken, change)
	case c.Level == Safety && change.Old == Pass && (change.New == Skip || change.New == Inconclusive):
		d.Lost = append(d.Lost, change)
	case before == nil:
		d.Added = append(d.Added, change)
	case change.Old == Fail && (change.New == Pass || change.New == Warn || change.New == Seen):
		d.Fixed = append(d.Fixed, change)
	default:
		d.Changed = append(d.Changed, change)
	}
}

// ExitCode returns the status of a comparison: ExitError if a case could not be run now, and could before or is new; else ExitFailed if anything broke, or a
// passed safety case is not decided any more; else ExitOK.
func (d Delta) ExitCode() int {
	for _, c := range append(d.Changed[:len(d.Changed):len(d.Changed)], d.Added...) { // without room behind it, append copies Changed
		if c.New == Error {
			return ExitError
		}
	}
	if len(d.Broken) > 0 || len(d.Lost) > 0 {
		return ExitFailed
	}
	return ExitOK
}

// WriteDiff writes the comparison as text: new failures after all other changes, then the totals. Of o it uses Color, ShowSecrets and Width. The error is
// that of w.
func WriteDiff(w io.Writer, old, now *Report, o Options) error {
	d := Diff(prepare(old, o), prepare(now, o))
	t := &texter{o: o}
	for _, note := range d.Notes {
		t.line("%s %s", t.paint(yellow, "note:"), oneLine(note))
	}
	t.changes("Gone", d.Gone)
	t.changes("New cases", d.Added)
	t.changes("Changed", d.Changed)
	t.changes("Fixed", d.Fixed)
	t.changes("Safety not decided any more", d.Lost)
	t.changes("New failures", d.Broken)
	t.line("%s", strings.Join([]string{
		plural(len(d.Broken), "new failure"), fmt.Sprintf("%d lost", len(d.Lost)), fmt.Sprintf("%d fixed", len(d.Fixed)),
		fmt.Sprintf("%d changed", len(d.Changed)), plural(len(d.Added), "new case"),
		fmt.Sprintf("%d gone", len(d.Gone)), fmt.Sprintf("%d the same", d.Same),
	}, " · "))
	return t.writeTo(w)
}

// changes writes one list of a comparison under a heading; nothing if the list is empty.
func (t *texter) changes(heading string, list []Change) {
	if len(list) == 0 {
		return
	}
	t.line("%s", t.paint(bold, heading))
	for _, c := range list {
		verdicts := strings.Join(nonEmpty(string(c.Old), string(c.New)), " → ")
		shown := c.New
		if shown == "" {
			shown = c.Old
		}
		t.line("  %s  %s  %s", t.paint(color(shown), pad(verdicts, 20)), c.ID, t.paint(dim, string(c.Level)))
		switch c.New {
		case Fail:
			t.prose("rule", c.Rule)
			t.prose("actual", c.Actual)
		case Skip, Inconclusive:
			t.prose("reason", c.Actual)
		}
	}
	t.line("")
}
