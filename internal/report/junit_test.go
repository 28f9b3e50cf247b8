package report_test

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/report"
)

// junit is what a CI system reads, spelled anew so that a slip in the writer's
// own types shows.
type junit struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Time     float64  `xml:"time,attr"`
	Suites   []struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitTest     `xml:"testcase"`
	} `xml:"testsuite"`
}

type junitTest struct {
	Name       string          `xml:"name,attr"`
	Classname  string          `xml:"classname,attr"`
	Time       float64         `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Failure    []junitDetail   `xml:"failure"`
	Error      []junitDetail   `xml:"error"`
	Skipped    []junitDetail   `xml:"skipped"`
	Out        string          `xml:"system-out"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitDetail struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

func readJUnit(t testing.TB, o report.Options, reports ...*report.Report) (junit, map[string]junitTest) {
	t.Helper()
	var all junit
	text := write(t, report.JUnit, o, reports...)
	if err := xml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("not XML: %v\n%s", err, text)
	}
	tests := map[string]junitTest{}
	for _, s := range all.Suites {
		if s.Tests != len(s.Cases) {
			t.Errorf("suite %s says %d tests and has %d", s.Name, s.Tests, len(s.Cases))
		}
		for _, c := range s.Cases {
			tests[c.Name] = c
		}
	}
	return all, tests
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	all, tests := readJUnit(t, report.Options{}, sample())
	if all.Tests != 10 || all.Failures != 1 || all.Errors != 1 || all.Skipped != 2 || all.Time != 6.1 {
		t.Errorf("totals %d %d %d %d in %v s", all.Tests, all.Failures, all.Errors, all.Skipped, all.Time)
	}
	if s := all.Suites[0]; s.Name != "scope" || s.Timestamp != "2026-01-02T03:04:05" || s.Properties[0].Value != "http://127.0.0.1:8080/payments" {
		t.Errorf("first suite: %+v", s)
	}
	failed := tests["scope/other-path-not-answered"]
	if len(failed.Failure) != 1 || failed.Failure[0].Type != "safety" || !strings.Contains(failed.Failure[0].Message, "the payment's answer") {
		t.Fatalf("the failure is %+v", failed.Failure)
	}
	for _, want := range []string{"A key used on one operation", "expected", "curl -sSig", "payments 1, refunds 0"} {
		if !strings.Contains(failed.Failure[0].Text, want) {
			t.Errorf("the failure does not say %q", want)
		}
	}
	if failed.Classname != "scope" || failed.Time != 0.012 || failed.Properties[0] != (junitProperty{"level", "safety"}) {
		t.Errorf("the failed test is %+v", failed)
	}
	if spec := failed.Properties[len(failed.Properties)-1]; spec != (junitProperty{"spec", "draft-07 §2.2, field practice"}) {
		t.Errorf("spec is %+v", spec)
	}
	for id, message := range map[string]string{"scope/other-principal-not-answered": "skip: needs a second principal: --as", "inflight/retry-after-sane": "inconclusive: the requests did not overlap"} {
		if c := tests[id]; len(c.Skipped) != 1 || c.Skipped[0].Message != message || c.Failure != nil {
			t.Errorf("%s: %+v", id, c)
		}
	}
	if c := tests["net/abort-then-retry-resolves"]; len(c.Error) != 1 || c.Failure != nil || c.Error[0].Message != "dial tcp: connection refused" {
		t.Errorf("the error is %+v", c)
	}
	for id, out := range map[string]string{"replay/marker": "Idempotent-Replayed", "conflict/rejected-status": "400 with a problem", "replay/status": ""} {
		if c := tests[id]; c.Failure != nil || c.Error != nil || c.Skipped != nil || !strings.Contains(c.Out, out) || (out == "") != (c.Out == "") {
			t.Errorf("%s: %+v", id, c)
		}
	}
}

func TestJUnitKnown(t *testing.T) {
	t.Parallel()
	all, tests := readJUnit(t, report.Options{Known: known(t, "scope/other-path-not-answered # ticket 7\nreplay/status")}, sample())
	if c := tests["scope/other-path-not-answered"]; c.Failure != nil || len(c.Skipped) != 1 || !strings.Contains(c.Skipped[0].Message, "ticket 7") {
		t.Errorf("a known failure is %+v", c)
	}
	if c := tests["replay/status"]; len(c.Failure) != 1 || !strings.Contains(c.Failure[0].Message, "take it off the list") {
		t.Errorf("a known failure that passes is %+v", c)
	}
	if all.Failures != 1 || all.Skipped != 3 {
		t.Errorf("%d failures, %d skipped", all.Failures, all.Skipped)
	}
}

func TestJUnitSeveral(t *testing.T) {
	t.Parallel()
	all, _ := readJUnit(t, report.Options{}, sample(), betterSample())
	if all.Tests != 20 || len(all.Suites) != 10 || all.Suites[5].Name != "fiber v3.2.0 scope" {
		t.Errorf("%d tests in %d suites, the sixth is %q", all.Tests, len(all.Suites), all.Suites[5].Name)
	}
}
