package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
)

// Every filter selects what it says, and nothing else.
func TestSelection(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	rec := persist.Record{
		ID: persist.ID{Key: "idemp:order:u1:o7"}, Origin: "https://a:443", Created: now.Add(-2 * time.Hour), State: persist.StateConfirmed,
		Answer: &persist.Answer{Status: 402},
	}
	for name, c := range map[string]struct {
		flags selectFlags
		globs []string
		want  bool
	}{
		"none":            {selectFlags{}, nil, true},
		"since":           {selectFlags{since: "3h"}, nil, true},
		"since later":     {selectFlags{since: "1h"}, nil, false},
		"since a day":     {selectFlags{since: "1d"}, nil, true},
		"since a date":    {selectFlags{since: "2026-11-21"}, nil, true},
		"since a time":    {selectFlags{since: "2026-11-21T19:00:00Z"}, nil, false},
		"older":           {selectFlags{older: time.Hour}, nil, true},
		"not so old":      {selectFlags{older: 3 * time.Hour}, nil, false},
		"origin":          {selectFlags{origin: "https://a:443"}, nil, true},
		"other origin":    {selectFlags{origin: "https://b:443"}, nil, false},
		"result":          {selectFlags{results: []string{"done", "declined"}}, nil, true},
		"other result":    {selectFlags{results: []string{"done"}}, nil, false},
		"key":             {selectFlags{}, []string{"x", "idemp:order:u1:o7"}, true},
		"pattern":         {selectFlags{}, []string{"idemp:order:u1:*"}, true},
		"another pattern": {selectFlags{}, []string{"idemp:order:u2:*"}, false},
	} {
		sel, err := c.flags.selection(persist.Query{}, c.globs, now)
		if err != nil || sel.match(&rec) != c.want {
			t.Errorf("%s: %t, %v", name, sel.match(&rec), err)
		}
	}
	for name, c := range map[string]struct {
		flags selectFlags
		globs []string
	}{
		"--since": {selectFlags{since: "soon"}, nil}, "--state": {selectFlags{states: []string{"lost"}}, nil},
		"--result": {selectFlags{results: []string{"paid"}}, nil}, "--declined": {selectFlags{declined: []string{"x"}}, nil}, "pattern": {selectFlags{}, []string{"[a"}},
	} {
		if _, err := c.flags.selection(persist.Query{}, c.globs, now); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The formats show the same operations; --sort puts the greatest first.
func TestJournalListFormats(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, startMock(t, mockserver.Config{}))
	list := func(args ...string) string {
		return run(t, append([]string{"journal", "list", "--journal", j}, args...)...).want(t, exitOK).out
	}
	rows, err := csv.NewReader(strings.NewReader(list("--format", "csv"))).ReadAll()
	if err != nil || len(rows) != 4 || rows[0][0] != "key" || rows[3][0] != "idemp:o:c" || rows[3][3] != "done" {
		t.Errorf("csv: %q, %v", rows, err)
	}
	var array []recordView
	if err := json.Unmarshal([]byte(list("--format", "json")), &array); err != nil || len(array) != 3 || array[2].Result != resultDone {
		t.Errorf("json: %+v, %v", array, err)
	}
	if err := json.Unmarshal([]byte(list("none", "--format", "json")), &array); err != nil || len(array) != 0 {
		t.Errorf("an empty array: %+v, %v", array, err)
	}
	if n := strings.Count(list("--format", "ndjson", "--limit", "2"), "\n"); n != 2 {
		t.Errorf("ndjson with a limit: %d lines", n)
	}
	newest := list("--sort", "created", "--limit", "1", "--format", "ndjson")
	if !strings.Contains(newest, "idemp:o:c") || strings.Count(newest, "\n") != 1 {
		t.Errorf("the newest: %s", newest)
	}
	if got := list("--result", "done"); strings.Contains(got, "idemp:o:a") || !strings.Contains(got, "idemp:o:c") {
		t.Errorf("done: %s", got)
	}
	for _, bad := range [][]string{{"--sort", "created"}, {"--sort", "x", "--limit", "1"}, {"--limit", "-1"}, {"--format", "xml"}} {
		run(t, append([]string{"journal", "list", "--journal", j}, bad...)...).want(t, exitUsage)
	}
}

// What was tried is drawn: a line for each attempt, as long as it took.
func TestShowDrawsTheHistory(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	rec := persist.Record{
		ID: persist.ID{Key: "k"}, State: persist.StateHeld, HoldReason: persist.HoldStoredError, Created: at, MaybeSent: true, FirstSent: at,
		Method: "POST", Origin: "https://a:443", Target: "/pay?secret=1", Profile: "p", Attempts: 2, Sends: 1, Note: "asked\nthe bank",
		History: []persist.Attempt{
			{At: at, Took: 30 * time.Second, Sent: true, Error: "no answer"}, {At: at.Add(time.Minute), Took: 3 * time.Second, Status: 503, Sent: true},
			{At: at.Add(2 * time.Minute), Error: "connection refused"},
		},
	}
	var b bytes.Buffer
	if err := showText(&b, &rec, recordParts{}, clock{}); err != nil {
		t.Fatal(err)
	}
	want := `k
  seen      ` + seenKey(&rec) + `
  state     held (stored error), result held
  request   POST https://a:443/pay, 0 bytes, profile p
  created   2026-11-21T20:00:00Z
  sent      yes, first 2026-11-21T20:00:00Z; 2+ attempts, 1 sends
  note      asked the bank
  history
    2026-11-21T20:00:00Z ━━━━━━━━━━━━━━━━━━━━     30s  no answer
    2026-11-21T20:01:00Z ━━                        3s  503
    2026-11-21T20:02:00Z ━                         0s  connection refused (not sent)
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// Counts, percentiles and the histogram agree with the records.
func TestJournalStats(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, startMock(t, mockserver.Config{}))
	var st stats
	if err := json.Unmarshal([]byte(run(t, "journal", "stats", "--journal", j, "--json").want(t, exitOK).out), &st); err != nil {
		t.Fatal(err)
	}
	if st.Operations != 3 || st.States["pending"] != 2 || st.Results[resultDone] != 1 || st.Statuses[201] != 1 || st.Ages[0] != 2 || st.FileBytes == 0 {
		t.Errorf("%+v", st)
	}
	text := run(t, "journal", "stats", "--journal", j).want(t, exitOK).out
	if !strings.HasPrefix(text, "3 operations, ") || !strings.Contains(text, "  under 1m    "+strings.Repeat("█", 40)+" 2\n") {
		t.Errorf("text\n%s", text)
	}
	var d distribution
	for i := 1; i <= 1000; i++ {
		d.add(float64(i))
	}
	d.add(0)
	d.conclude()
	for name, c := range map[string][2]float64{"p50": {d.P50, 500}, "p95": {d.P95, 950}, "max": {d.Max, 1000}} {
		if math.Abs(c[0]-c[1]) > c[1]*0.06 {
			t.Errorf("%s: %v, want about %v", name, c[0], c[1])
		}
	}
	for age, want := range map[time.Duration]int{0: 0, time.Minute: 1, 30 * 24 * time.Hour: ageBuckets} {
		if got := ageBucket(age); got != want {
			t.Errorf("%v: bucket %d, want %d", age, got, want)
		}
	}
}

// The page needs a file to be written to, which is not the journal, and puts the
// worst first.
func TestJournalReport(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, startMock(t, mockserver.Config{}))
	run(t, "journal", "report", "--journal", j).usage(t, "oncehttp: --out is required")
	run(t, "journal", "report", "--journal", j, "--out", j).want(t, exitUsage)
	page := t.TempDir() + "/page.html"
	if got := run(t, "journal", "report", "--journal", j, "--out", page).want(t, exitOK); got.out != "wrote "+page+": 3 operations\n" {
		t.Errorf("stdout %q", got.out)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	first, last := strings.Index(string(b), "idemp:o:a"), strings.Index(string(b), "idemp:o:c")
	if first < 0 || last < first || strings.Contains(string(b), "q=hidden") {
		t.Errorf("unknown at %d, done at %d; or a query string is in the page", first, last)
	}
}
