package conformance_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
)

// The measure of the search, as docs/conformance-results.md has it.
//
//	go test ./conformance -run TestMeasure -v -timeout 120m -args -measure 150
var (
	measureFlag       = flag.Int("measure", 0, "measure the search by so many drawn mutants, 60 seconds each, and two thirds as many right servers")
	measuredSeedsFlag = flag.Uint64("measured", 7, "the seed of what is drawn for the measure")
)

// measuredFor is how long each mutant is searched, in virtual time.
const measuredFor = time.Minute

// Nine of ten mutants are found within a minute each; the tables of the measure are printed.
func TestMeasureMutants(t *testing.T) {
	t.Parallel()
	if *measureFlag == 0 {
		return // the gate takes TestExploredMutants and TestExploredRightServers
	}
	rows := searchMutants(t, drawMutants(*measureFlag, *measuredSeedsFlag), func(o *conformance.Options) { o.For, o.MaxFindings = measuredFor, 1 })
	missed := slices.DeleteFunc(slices.Clone(rows), func(row measured) bool { return len(row.explored) > 0 })
	t.Logf("of %d mutants %d were found within %v each\n\n%s\n%s", len(rows), len(rows)-len(missed), measuredFor, matrix(rows), byRelation(rows))
	for _, row := range missed {
		t.Logf("missed: %s, in %d requests", row.mutant, row.requests)
	}
	if len(missed)*10 > len(rows) {
		t.Errorf("the search missed %d of %d mutants, want a tenth at most", len(missed), len(rows))
	}
}

// Nothing is found in right servers, drawn from the freedoms.
func TestMeasureRights(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	rights := drawRights(*measureFlag*2/3, *measuredSeedsFlag)
	virtually(t, rights, func(t *testing.T, i int, one right) {
		_, url := newSample(t, one.choices, one.q)
		o := explored(sampleOptions(url), *historiesFlag)
		o.Profile, o.Seed = one.declare(), uint64(i+1)
		rep := run(t, o)
		requests.Add(int64(rep.Requests))
		if len(wrong(rep)) > 0 || rep.Summary.Pass < 40 {
			t.Errorf("%+v takes for the same: %s, seed %d: got %v and %d passes, want no finding and 40 at least\n%s", one.choices, one.takes, o.Seed, wrong(rep), rep.Summary.Pass, text(rep))
		}
	})
	t.Logf("%d right servers, %d sequences and %d requests in all", len(rights), len(rights)**historiesFlag, requests.Load())
}

// searchMutants searches each mutant with options that change makes.
func searchMutants(t *testing.T, all []mutant, change func(o *conformance.Options)) []measured {
	rows := make([]measured, len(all))
	virtually(t, all, func(t *testing.T, i int, m mutant) {
		_, url := newSample(t, choices{updates: true}, m.q)
		o := explored(sampleOptions(url), 0)
		o.Profile = choices{updates: true}.declare()
		change(&o)
		rep := run(t, o)
		rows[i] = measured{mutant: m, explored: faults(rep), requests: rep.Requests, took: time.Duration(rep.MS * float64(time.Millisecond))}
		t.Logf("%-70s %v, %d requests, %v", m, rows[i].explored, rep.Requests, rows[i].took.Round(time.Second))
	})
	return rows
}

// matrix is a table of faults by triggers: the seconds until a mutant was found.
func matrix(rows []measured) string {
	var faults, when []string
	cells := map[string]string{}
	for _, row := range rows {
		if !slices.Contains(faults, row.fault) {
			faults = append(faults, row.fault)
		}
		if !slices.Contains(when, row.trigger) {
			when = append(when, row.trigger)
		}
		cells[row.fault+"\x00"+row.trigger] = "missed"
		if len(row.explored) > 0 {
			cells[row.fault+"\x00"+row.trigger] = fmt.Sprintf("%.0f", row.took.Seconds())
		}
	}
	slices.Sort(faults)
	slices.Sort(when)
	var b strings.Builder
	fmt.Fprintf(&b, "| fault | %s |\n|---|%s\n", strings.Join(when, " | "), strings.Repeat("---|", len(when)))
	for _, fault := range faults {
		b.WriteString("| " + fault)
		for _, w := range when {
			b.WriteString(" | " + cells[fault+"\x00"+w])
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// byRelation is a table of faults: how many of the mutants were found, and how often each relation was needed for that.
func byRelation(rows []measured) string {
	drawn, found, needed := map[string]int{}, map[string]int{}, map[string]map[string]int{}
	for _, row := range rows {
		drawn[row.fault]++
		found[row.fault] += oneIf(len(row.explored) > 0)
		if needed[row.fault] == nil {
			needed[row.fault] = map[string]int{}
		}
		for _, id := range row.explored {
			for relation := range strings.SplitSeq(strings.TrimPrefix(id, "explore/"), "-and-") {
				needed[row.fault][relation]++
			}
		}
	}
	var b strings.Builder
	b.WriteString("| fault | found | by the relations |\n|---|---|---|\n")
	for _, fault := range slices.Sorted(maps.Keys(drawn)) {
		fmt.Fprintf(&b, "| %s | %d of %d | %s |\n", fault, found[fault], drawn[fault], counted(needed[fault]))
	}
	return b.String()
}

// counted lists names with their numbers, the largest first.
func counted(of map[string]int) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(of[b]-of[a], cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("`%s` %d", name, of[name])
	}
	return strings.Join(names, ", ")
}
