package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The JUnit form as Jenkins, GitLab and GitHub's test reporters read it.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property,omitempty"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitCase struct {
		Name       string          `xml:"name,attr"`
		Classname  string          `xml:"classname,attr"`
		Time       string          `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property,omitempty"`
		Failure    *junitDetail    `xml:"failure"`
		Error      *junitDetail    `xml:"error"`
		Skipped    *junitSkipped   `xml:"skipped"`
		SystemOut  string          `xml:"system-out,omitempty"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitDetail struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// WriteJUnit writes the reports as JUnit XML: a suite per group, a failure for
// fail, an error for error, skipped for skip and inconclusive. A known failure
// is skipped, with its reason; a listed case with pass, warn or seen is a failure. Warn and
// seen are successes with output, since JUnit has no word for them.
func WriteJUnit(w io.Writer, o Options, reports ...*Report) error {
	all := junitSuites{Name: "oncehttp"}
	total := 0.0
	for _, r := range reports {
		r = prepare(r, o)
		total += r.MS
		for _, g := range r.Groups() {
			s := junitGroup(r, &g, o)
			if len(reports) > 1 {
				s.Name = printable(r.Title()) + " " + s.Name
			}
			all.Tests, all.Failures = all.Tests+s.Tests, all.Failures+s.Failures
			all.Errors, all.Skipped = all.Errors+s.Errors, all.Skipped+s.Skipped
			all.Suites = append(all.Suites, s)
		}
	}
	all.Time = seconds(total)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("report: junit: %w", err)
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return fmt.Errorf("report: junit: %w", err)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("report: junit: %w", err)
	}
	return nil
}

// junitGroup returns a group of cases as a test suite of JUnit.
func junitGroup(r *Report, g *Group, o Options) junitSuite {
	s := junitSuite{Name: g.Name, Tests: len(g.Cases)}
	for _, p := range [][2]string{
		{"target", r.Target}, {"kind", r.Kind}, {"suite", r.Suite}, {"run", r.Run},
		{"profile", r.Profile}, {"seed", strconv.FormatUint(r.Seed, 10)},
	} {
		s.Properties = addProperty(s.Properties, p[0], p[1])
	}
	if !r.Started.IsZero() {
		s.Timestamp = r.Started.UTC().Format("2006-01-02T15:04:05")
	}
	took := 0.0
	for i := range g.Cases {
		c := junitTest(&g.Cases[i], o)
		took += g.Cases[i].MS
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
	}
	s.Time = seconds(took)
	return s
}

// junitTest makes a test of one case. A known failure is skipped; a listed case
// with Pass, Warn or Seen is a failure.
func junitTest(c *Case, o Options) junitCase {
	t := junitCase{Name: c.ID, Classname: c.Group(), Time: seconds(c.MS)}
	t.Properties = addProperty(t.Properties, "level", string(c.Level))
	t.Properties = addProperty(t.Properties, "verdict", string(c.Verdict))
	t.Properties = addProperty(t.Properties, "witness", string(c.Witness))
	t.Properties = addProperty(t.Properties, "spec", refs(c.Spec))
	known := o.Known.Has(c.ID)
	switch c.Verdict {
	case Skip, Inconclusive:
		t.Skipped = &junitSkipped{Message: printable(string(c.Verdict) + ": " + c.Reason)}
	case Fail:
		if known {
			t.Skipped = &junitSkipped{Message: printable("known failure: " + message(c) + " " + o.Known.Why(c.ID))}
			return t
		}
		t.Failure = &junitDetail{Message: printable(message(c)), Type: string(c.Level), Text: plain(c)}
	case Error:
		t.Error = &junitDetail{Message: printable(message(c)), Type: string(c.Verdict), Text: plain(c)}
	default:
		if known {
			t.Failure = &junitDetail{Type: "known-failure", Text: plain(c),
				Message: "listed as a known failure and does not fail: take it off the list"}
		} else if c.Verdict != Pass {
			t.SystemOut = plain(c)
		}
	}
	return t
}

// message returns one line about a failed case: the observation, else the reason, else the rule.
func message(c *Case) string {
	for _, text := range []string{c.Actual, c.Reason, c.Rule} {
		if text != "" {
			return clip(text, textLineMax)
		}
	}
	return string(c.Verdict)
}

// plain returns the evidence of one case as uncoloured text.
func plain(c *Case) string {
	t := new(texter)
	t.details(c)
	return "\n" + printable(strings.TrimRight(t.b.String(), "\n")) + "\n"
}

// addProperty adds a property unless its value is empty.
func addProperty(list []junitProperty, name, value string) []junitProperty {
	if value == "" {
		return list
	}
	return append(list, junitProperty{Name: name, Value: printable(value)})
}

// seconds returns milliseconds as seconds with three decimals, as JUnit's files have them.
func seconds(ms float64) string { return strconv.FormatFloat(ms/1000, 'f', 3, 64) }
