package commandtest

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metric is one family of metrics, as docs/metrics.md lists it.
type metric struct{ kind, labels, help string }

// WantMetrics compares metrics in the text format of Prometheus with the list of docs/metrics.md, for the names with one of the prefixes. Each family
// of the text must have a sample. The test must run two folders below the one of internal.
func WantMetrics(t *testing.T, text string, prefixes ...string) {
	t.Helper()
	listed, written := listedMetrics(t, prefixes), writtenMetrics(text)
	if len(listed) == 0 {
		t.Errorf("docs/metrics.md lists no %q", prefixes)
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if listed[name] != written[name] {
			t.Errorf("%s: docs/metrics.md lists %q, written is %q", name, listed[name], written[name])
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("docs/metrics.md lists %s, which is not written", name)
	}
}

// listedRow is a row of a table in docs/metrics.md.
var listedRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (gauge|counter) \\| (1|s|By) \\| ([a-z_, ]*)\\| (.*) \\|$")

// listedMetrics returns the metrics that docs/metrics.md lists, by name, as far as they have one of the prefixes. A unit in the list that is not that of the name
// fails the test.
func listedMetrics(t *testing.T, prefixes []string) map[string]metric {
	t.Helper()
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]metric{}
	for _, row := range listedRow.FindAllStringSubmatch(string(page), -1) { // row[1:]: name, kind, unit, labels, help
		name := row[1]
		if unit := unitOf(name); row[3] != unit {
			t.Errorf("docs/metrics.md: %s has the unit %s, its name says %s", name, row[3], unit)
		}
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			all[name] = metric{row[2], strings.TrimSpace(row[4]), row[5]} // kind (gauge or counter), labels, help
		}
	}
	return all
}

// unitOf returns the unit of a metric by its name, as UCUM spells it: "s", "By" for bytes, or "1" for none.
func unitOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_seconds"):
		return "s"
	case strings.HasSuffix(name, "_bytes"):
		return "By"
	}
	return "1"
}

var (
	writtenLine  = regexp.MustCompile(`(?m)^(?:# (HELP|TYPE) )?([a-z_]+)(?:\{(.*)\})? (.+)$`)
	writtenLabel = regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
)

// writtenMetrics returns the metrics of a text in the Prometheus format, by name. The labels are the names of those in the last sample; "none" without a sample. A
// line has, in line[1] to line[4], HELP or TYPE or nothing, the name, the labels, and the rest.
func writtenMetrics(text string) map[string]metric {
	all := map[string]metric{}
	for _, line := range writtenLine.FindAllStringSubmatch(text, -1) {
		of, found := all[line[2]]
		if !found {
			of.labels = "none"
		}
		switch line[1] {
		case "HELP":
			of.help = line[4]
		case "TYPE":
			of.kind = line[4]
		default:
			var labels []string
			for _, label := range writtenLabel.FindAllStringSubmatch(line[3], -1) {
				labels = append(labels, label[1])
			}
			of.labels = strings.Join(labels, ", ")
		}
		all[line[2]] = of
	}
	return all
}
