package results_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/golden"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// The summary counts by result and status, and names a next step only where one
// can help: nothing that is held, abandoned or done says "run again".
func TestTallySummaryAndNextSteps(t *testing.T) {
	t.Parallel()
	var ta results.Tally
	for _, l := range everyLine() {
		ta.Add(&l)
	}
	ta.NotTried = 3
	want := "in.csv: 12 rows: 2 done (201), 1 duplicate (201), 1 declined (402), 1 rejected (401), 2 held (stored error), " +
		"2 unknown (abandoned ×1, no answer ×1), 3 not looked at; 1 from the journal; 3 requests sent"
	if got := ta.Summary("in.csv"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	steps := []string{
		"1 declined (402): --generation 2 tries anew",
		"1 rejected (401): check the credentials (-H), run the same command again",
		"2 held (stored error): oncehttp journal stuck --journal j.db",
		"1 unknown (abandoned): nothing more is sent; oncehttp journal show KEY --journal j.db",
		"1 unknown (no answer): run the same command again",
		"3 not looked at, and an earlier run may have ended them: run the same command again",
	}
	if got := ta.NextSteps("j.db", 1); !slices.Equal(got, steps) {
		t.Errorf("got %q, want %q", got, steps)
	}
	if ta.Exit != terminal.ExitUnknown {
		t.Errorf("exit status %d", ta.Exit)
	}
}

// everyLine has a line of most results.
func everyLine() []results.Line {
	return []results.Line{
		{Result: results.Done, Status: 201, Source: "wire", Attempts: 2, Requests: 2}, {Result: results.Done, Status: 201, Source: "journal", Attempts: 9},
		{Result: results.Declined, Status: 402, Source: "wire", Attempts: 1, Requests: 1, Exit: terminal.ExitRefused},
		{Result: results.Held, Error: &results.LineError{Code: "stored_error"}, Exit: terminal.ExitUnknown},
		{Result: results.Held, Error: &results.LineError{Code: "stored_error"}, Exit: terminal.ExitUnknown},
		{Result: results.Rejected, Status: 401, Error: &results.LineError{Code: "refused"}, Exit: terminal.ExitRefused},
		{Result: results.Unknown, Error: &results.LineError{Code: "abandoned"}, Exit: terminal.ExitUnknown},
		{Result: results.Unknown, Error: &results.LineError{Code: "no_answer"}, Exit: terminal.ExitUnknown},
		{Result: results.Duplicate, OfRow: 1, Status: 201, Source: "wire", Attempts: 2, Joined: true},
	}
}

// The summary of a batch in which everything goes wrong once.
func TestGoldenSummary(t *testing.T) {
	t.Parallel()
	var ta results.Tally
	for _, l := range everyLine() {
		ta.Add(&l)
	}
	ta.NotTried = 3
	golden.Compare(t, "summary", ta.Summary("orders.csv")+"\n"+strings.Join(ta.NextSteps("orders.csv.oncehttp.db", 1), "\n")+"\n")
}

// TestTallyNamesPending: the summary gives the number of pending ones among the unknown, as the list and the control totals do, and says no word twice.
func TestTallyNamesPending(t *testing.T) {
	t.Parallel()
	var ta results.Tally
	for i := range 4 {
		ta.Add(&results.Line{Result: results.Unknown, GoesOn: i < 2, Requests: 1, Error: &results.LineError{Code: "no_answer"}})
	}
	for range 2 {
		ta.Add(&results.Line{Result: results.Held, Requests: 1, Error: &results.LineError{Code: "held"}})
	}
	if got, want := ta.Summary("in.csv"), "in.csv: 6 rows: 2 held, 4 unknown (no answer, 2 of them pending); 6 requests sent"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	parted := ta
	parted.Parted = true
	if got, want := parted.Summary("in.csv"), "in.csv: 6 rows: 2 held, 2 pending (no answer), 2 unknown (no answer); 6 requests sent"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := parted.NextSteps("j.db", 1)[1:], []string{"2 pending (no answer): run the same command again", "2 unknown (no answer): run the same command again"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := ta.NextSteps("j.db", 1), []string{"2 held: oncehttp journal stuck --journal j.db", "4 unknown (no answer): run the same command again"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOtherAccount: no further run sends the rows with keys of another account. The step names the command for them.
func TestOtherAccount(t *testing.T) {
	t.Parallel()
	var tally results.Tally
	tally.Add(&results.Line{Result: results.Unknown, Error: &results.LineError{Code: "other_account"}})
	if steps := tally.NextSteps("j.db", 1); len(steps) != 1 || !strings.Contains(steps[0], "journal assign KEY --account NAME --journal j.db") || strings.Contains(steps[0], "run the same command again") {
		t.Errorf("%q", steps)
	}
}

// TestFurtherDoubts: a summary has five kinds of doubts, and says of all others where they are named: in the lines of their rows.
func TestFurtherDoubts(t *testing.T) {
	t.Parallel()
	const kinds = 5
	var tally results.Tally
	for i := range kinds + 2 {
		l := results.Line{Result: results.Done, Doubt: fmt.Sprintf("/status=s%d", i)}
		if text := string(l.Marshal()); !strings.Contains(text, fmt.Sprintf(`"doubt":"/status=s%d"`, i)) {
			t.Errorf("%s", text)
		}
		tally.Add(&l)
	}
	steps := tally.NextSteps("j.db", 1)
	if len(steps) != kinds+1 || !slices.Contains(steps, `2 of the done: doubts of other kinds, each named as "doubt" in the row's line; look whether these took effect`) {
		t.Errorf("%q", steps)
	}
}
