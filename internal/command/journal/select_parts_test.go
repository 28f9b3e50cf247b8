package journal

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/view"
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
	if err := showText(&b, &rec, view.Parts{}, clock{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	want := `k
  seen      ` + session.SeenKey(&rec) + `
  state     held (stored error), result held
  request   POST https://a:443/pay, 0 bytes, profile p
  created   2026-11-21T20:00:00Z
  sent      yes, first 2026-11-21T20:00:00Z; 2 attempts, 1 send
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

// A quantile is within 6 % of the value.
func TestDistribution(t *testing.T) {
	t.Parallel()
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
}

// The quantiles of equal values, and of one, are the value itself.
func TestDistributionOfOneValue(t *testing.T) {
	t.Parallel()
	var d distribution
	for range 3 {
		d.add(1140)
		if d.conclude(); d.P50 != 1140 || d.P95 != 1140 || d.Max != 1140 {
			t.Errorf("%+v", d)
		}
	}
}

// The quantiles of small numbers are such numbers.
func TestDistributionOfCounts(t *testing.T) {
	t.Parallel()
	var d distribution
	for i := range 100 {
		d.addCount(i / 10)
	}
	if d.conclude(); d.P50 != 4 || d.P95 != 9 || d.Max != 9 {
		t.Errorf("%+v", d)
	}
}

func TestAgeBucket(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]int{0: 0, time.Minute: 1, 30 * 24 * time.Hour: ageBuckets} {
		if got := ageBucket(age); got != want {
			t.Errorf("%v: bucket %d, want %d", age, got, want)
		}
	}
}

// TestSentText: only a recorded attempt or answer says that something was sent; a count alone may stand for a process that died.
func TestSentText(t *testing.T) {
	t.Parallel()
	for want, records := range map[string][]persist.Record{
		"no":    {{}, {History: []persist.Attempt{{Error: "refused"}}}},
		"maybe": {{MaybeSent: true}, {MaybeSent: true, Sends: 1}, {MaybeSent: true, Sends: 1, History: []persist.Attempt{{Error: "refused"}}}},
		"yes":   {{MaybeSent: true, Sends: 1, History: []persist.Attempt{{Sent: true}}}, {Sends: 1, Status: 201, Swept: true}, {Sends: 1, Answer: &persist.Answer{Status: 201}}},
	} {
		for _, rec := range records {
			if got := sentText(&rec); got != want {
				t.Errorf("%+v: %q, want %q", rec, got, want)
			}
		}
	}
}
