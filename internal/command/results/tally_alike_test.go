package results_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// What is said alike is said once: rows with one status that ended for two reasons are one group to a person.
func TestTallyMergesWhatIsSaidAlike(t *testing.T) {
	t.Parallel()
	var ta results.Tally
	for _, code := range []string{"refused", "refused", "attempts"} {
		ta.Add(&results.Line{Result: results.Rejected, Status: 429, Requests: 1, Exit: terminal.ExitUnknown, Error: &results.LineError{Code: code}})
	}
	ta.Add(&results.Line{Result: results.Rejected, Status: 401, Requests: 1, Exit: terminal.ExitUnknown, Error: &results.LineError{Code: "refused"}})
	if got, want := ta.Summary("in.csv"), "in.csv: 4 rows: 4 rejected (429 ×3, 401 ×1); 4 requests sent"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	steps := ta.NextSteps("j.db", 1)
	if len(steps) != 2 || steps[0] != "3 rejected (429): the server wants fewer at a time (--rate); run the same command again" {
		t.Errorf("steps %q", steps)
	}
}
