// Command table writes the tables of docs/conformance-results.md from the reports of
// conformance/targets/field:
//
//	go run ./conformance/targets/table REPORTS docs/conformance-results.md
//
// REPORTS holds TARGET.json (the cases), TARGET.search.json (the search), TARGET.version, and
// TARGET.missing, the reason, for a target that could not be run.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/report"
)

// main puts the table of results of the servers under test into a page. Its arguments are the directory of reports and the page; errors end it with
// status 1, wrong arguments with 2.
func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "table: want the directory of reports and the page")
		os.Exit(2)
	}
	if err := update(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// The marks around the tables in the page.
const (
	beginMark = "<!-- The tables of conformance/targets/field begin here. -->\n"
	endMark   = "<!-- The tables of conformance/targets/field end here. -->\n"
)

// update replaces the tables in the page by those of the reports in a directory. The page must have both marks, between which they stand.
func update(reports, page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return fmt.Errorf("%s has no marks to put the tables between", page)
	}
	tables, err := tablesOf(reports)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(before+beginMark+tables+endMark+after), 0o644)
}

// tablesOf returns the tables of all reports in a directory, sorted by target (a server under test), as Markdown. A target with a file .missing could
// not be had, and goes into a table of its own.
func tablesOf(dir string) (string, error) {
	versions, err := filepath.Glob(filepath.Join(dir, "*.version"))
	if err != nil {
		return "", err
	}
	slices.Sort(versions)
	var cases, searches, missing strings.Builder
	for _, name := range versions {
		base := strings.TrimSuffix(name, ".version")
		target := filepath.Base(base)
		version, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		if why, err := os.ReadFile(base + ".missing"); err == nil {
			fmt.Fprintf(&missing, "| %s | %s | %s |\n", target, oneLine(version), oneLine(why))
			continue
		}
		if err := addRows(&cases, &searches, base, target, oneLine(version)); err != nil {
			return "", err
		}
	}
	text := "| target | version | date | pass · fail · warn | seen · skipped · inconclusive | what failed |\n|---|---|---|---|---|---|\n" + cases.String()
	text += "\n| target | found by the search, with the shortest sequence |\n|---|---|\n" + searches.String()
	if missing.Len() > 0 {
		text += "\n| could not be had | version | why |\n|---|---|---|\n" + missing.String()
	}
	return text, nil
}

// addRows adds a target's rows. base is the path of its files without extension; the report of
// the search may be missing.
func addRows(cases, searches *strings.Builder, base, target, version string) error {
	r, err := read(base + ".json")
	if err != nil {
		return err
	}
	s := r.Summary
	fmt.Fprintf(cases, "| %s | %s | %s | %d · %d · %d | %d · %d · %d | %s |\n", target, version, r.Started.Format("2006-01-02"),
		s.Pass, s.Fail, s.Warn, s.Seen, s.Skip, s.Inconclusive, strings.Join(failures(r), ", "))
	found, err := read(base + ".search.json")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	histories := "no contradiction"
	if all := shortest(found); len(all) > 0 {
		histories = strings.Join(all, "<br>")
	}
	fmt.Fprintf(searches, "| %s | %s |\n", target, histories)
	return nil
}

// read reads one report of a conformance run from a file.
func read(name string) (*report.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r, err := report.Parse(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return r, errors.Join(err, f.Close())
}

// failures lists the ids of the failed cases, those of safety and liveness in bold; "none" if
// there are none.
func failures(r *report.Report) []string {
	all := []string{}
	for _, c := range r.Cases {
		if c.Verdict != report.Fail {
			continue
		}
		id := "`" + c.ID + "`"
		if c.Level == report.Safety || c.Level == report.Liveness {
			id = "**" + id + "**"
		}
		all = append(all, id)
	}
	if len(all) == 0 {
		return []string{"none"}
	}
	return all
}

// shortest lists the findings of a search, each with its sequence.
func shortest(r *report.Report) []string {
	var all []string
	for _, c := range r.Cases {
		if c.Verdict == report.Fail || c.Verdict == report.Warn {
			all = append(all, "`"+c.ID+"`: "+oneLine([]byte(c.Actual)))
		}
	}
	return all
}

// oneLine returns the text on one line, escaped for a cell of a table.
func oneLine(text []byte) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(string(text)), " "), "|", `\|`)
}
