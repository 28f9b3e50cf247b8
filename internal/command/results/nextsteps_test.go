package results_test

import (
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/results"
)

// TestNextStepsOfOpenEnds: the summary has the time of a wait while the outcome is open, the command that settles what an answer leaves open, and of a 202 no more
// than the answer says.
func TestNextStepsOfOpenEnds(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	const wait = "the first is due at 2026-03-04T05:06:07Z, as the API or the pause after failures has it: run the same command again then, or with a longer --max-retry-after, which waits"
	const settle = "; where the same answer comes again, ask the API what came of them, and settle each as oncehttp journal stuck lists it: oncehttp journal settle KEY@SEEN --absent, or --happened, --journal j.db"
	for name, c := range map[string]struct {
		line results.Line
		want string
	}{
		"a pending 429":     {results.Line{Result: results.Unknown, Status: 429, GoesOn: true, Due: due}, "1 pending (429): the server wants fewer at a time (--rate); " + wait},
		"a pending failure": {results.Line{Result: results.Unknown, Status: 503, GoesOn: true, Due: due}, "1 pending (503): " + wait},
		"due at once":       {results.Line{Result: results.Unknown, Status: 503, GoesOn: true}, "1 pending (503): run the same command again"},
		"unread":            {results.Line{Result: results.Unknown, Status: 402, GoesOn: true, Unread: true}, "1 pending (402): run the same command again" + settle},
		"unread, with wait": {results.Line{Result: results.Unknown, Status: 402, GoesOn: true, Unread: true, Due: due}, "1 pending (402): " + wait + settle},
		"a kept 500":        {results.Line{Result: results.Unknown, Status: 500, GoesOn: true}, "1 pending (500): run the same command again" + settle},
		"a rejected 429":    {results.Line{Result: results.Rejected, Status: 429, Due: due}, "1 rejected (429): the server wants fewer at a time (--rate); " + wait},
		"a 202":             {results.Line{Result: results.Accepted, Status: 202}, "1 accepted (202): the server took them on, and they may still fail: ask it what came of them; nothing more is sent for them"},
	} {
		ta := results.Tally{Parted: true}
		ta.Add(&c.line)
		if got := ta.NextSteps("j.db", 1); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTakenBack: rows that the end of a run stopped are told apart by whether they were attempted.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	var ta results.Tally
	ta.TakeBack(&results.Line{Attempts: 3})
	ta.TakeBack(&results.Line{})
	ta.NotTried = 5
	if got, want := ta.Summary("in.csv"), "in.csv: 5 rows: 4 not looked at, 1 stopped before a send; 0 requests sent"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want := []string{"4 not looked at, and an earlier run may have ended them: run the same command again", "1 stopped before a send, and nothing happened: run the same command again"}
	if got := ta.NextSteps("j.db", 1); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
