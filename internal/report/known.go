package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// knownLinesMax bounds a list of known failures.
const knownLinesMax = 100_000

// Known is a list of cases known to fail. Nil is the empty list.
type Known struct {
	ids []string
	why map[string]string
}

// ParseKnown reads a list: one case id a line, empty lines and everything from
// a # ignored. The text behind the # on an id's own line is its reason. If an
// id is malformed or stands twice, the error names its line.
func ParseKnown(r io.Reader) (*Known, error) {
	k := &Known{why: map[string]string{}}
	lines := bufio.NewScanner(r)
	number := 0
	for lines.Scan() {
		if number++; number > knownLinesMax {
			return nil, fmt.Errorf("report: known failures: more than %d lines", knownLinesMax)
		}
		id, why, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "\uFEFF"), "#")
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if !ValidID(id) {
			return nil, fmt.Errorf("report: known failures: line %d: %q is not a case id", number, clip(oneLine(id), 60))
		}
		if _, twice := k.why[id]; twice {
			return nil, fmt.Errorf("report: known failures: line %d: %s stands there twice", number, id)
		}
		k.ids = append(k.ids, id)
		k.why[id] = strings.TrimSpace(why)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("report: known failures: line %d: %w", number+1, err)
	}
	return k, nil
}

// IDs returns the listed ids in the order of the list.
func (k *Known) IDs() []string {
	if k == nil {
		return nil
	}
	return slices.Clone(k.ids)
}

// Has reports whether the case is listed.
func (k *Known) Has(id string) bool {
	if k == nil {
		return false
	}
	_, listed := k.why[id]
	return listed
}

// Why returns the reason that the list of known failures gives for a case; "" without one. k may be nil.
func (k *Known) Why(id string) string {
	if k == nil {
		return ""
	}
	return k.why[id]
}

// Judgement is a report compared with a list of known failures; ids are in the
// order of the report, those of Unknown in the order of the list.
type Judgement struct {
	// Accepted fail and are listed.
	Accepted []string
	// New fail and are not listed.
	New []string
	// Stale are listed and were held to the rule without failing: their lines
	// have to go, or the next failure would be hidden.
	Stale []string
	// Unknown are listed and name no case of the suite.
	Unknown []string
}

// Apply compares the report with the list of known failures: Accepted are failed cases on the list, New those not on it, Stale listed ones that do not fail any
// more, and Unknown listed ids of no case. all is every id of the suite: so a listed case left out of this run (--run, --skip) is not called unknown; nil stands for
// the ids of the report. A listed case that was skipped, inconclusive or an error is neither accepted nor stale.
func (k *Known) Apply(r *Report, all []string) Judgement {
	var j Judgement
	exists := make(map[string]bool, len(all)+len(r.Cases))
	for _, id := range all {
		exists[id] = true
	}
	for i := range r.Cases {
		id := r.Cases[i].ID
		exists[id] = true
		switch r.Cases[i].Verdict {
		case Fail:
			if k.Has(id) {
				j.Accepted = append(j.Accepted, id)
			} else {
				j.New = append(j.New, id)
			}
		case Pass, Warn, Seen:
			if k.Has(id) {
				j.Stale = append(j.Stale, id)
			}
		}
	}
	for _, id := range k.IDs() {
		if !exists[id] {
			j.Unknown = append(j.Unknown, id)
		}
	}
	return j
}

// The exit statuses of a run.
const (
	ExitOK     = 0 // no failure
	ExitFailed = 1 // a failure outside the list, or a stale line in it
	ExitUsage  = 2 // nothing was judged, or the list names unknown cases
	ExitError  = 3 // the suite itself failed, or the target cannot be reached
	// ExitUndecided: nothing failed, but a safety case was not decided, or the
	// run ended before every case was judged.
	ExitUndecided = 4
)

// ExitCode returns the status of a command at its end, after this report. all is as
// in Known.Apply. ExitError outranks ExitFailed: a broken run proves
// nothing about the cases it did not reach. A wrong list, or a run with every
// case skipped, outranks both: it says nothing about the target at all.
func ExitCode(r *Report, known *Known, all []string) int {
	j := known.Apply(r, all)
	switch s := Summarize(r.Cases); {
	case s.Total() == s.Skip, len(j.Unknown) > 0:
		return ExitUsage
	case s.Error > 0:
		return ExitError
	case len(j.New) > 0, len(j.Stale) > 0:
		return ExitFailed
	case r.Cut, len(Undecided(r.Cases)) > 0:
		return ExitUndecided
	}
	return ExitOK
}
