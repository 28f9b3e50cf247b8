package main

import (
	"slices"
	"testing"
)

// The summary counts by result and status, and names a next step only where one
// can help: nothing that is held, abandoned or done says "run again".
func TestTallySummaryAndNextSteps(t *testing.T) {
	t.Parallel()
	var ta tally
	for _, l := range everyLine() {
		ta.add(&l)
	}
	ta.notTried = 3
	want := "in.csv: 12 rows: 2 done (201), 1 duplicate (201), 1 declined (402), 1 rejected (401), 2 held (stored error), " +
		"2 unknown (abandoned ×1, no answer ×1), 3 not tried; 1 from the journal; 3 attempts"
	if got := ta.summary("in.csv"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	steps := []string{
		"1 declined (402): --generation 2 tries anew",
		"1 rejected (401): check the credentials (-H), run the same command again",
		"2 held (stored error): oncehttp journal stuck --journal j.db",
		"1 unknown (abandoned): nothing more is sent; oncehttp journal show KEY --journal j.db",
		"1 unknown (no answer): run the same command again",
		"3 not tried: run the same command again",
	}
	if got := ta.nextSteps("j.db", 1); !slices.Equal(got, steps) {
		t.Errorf("got %q, want %q", got, steps)
	}
	if ta.exit != exitUnknown {
		t.Errorf("exit status %d", ta.exit)
	}
}

// everyLine has a line of most results.
func everyLine() []line {
	return []line{
		{Result: resultDone, Status: 201, Source: "wire", Attempts: 2}, {Result: resultDone, Status: 201, Source: "journal", Attempts: 9},
		{Result: resultDeclined, Status: 402, Source: "wire", Attempts: 1, exit: exitRefused},
		{Result: resultHeld, Error: &lineError{Code: "stored_error"}, exit: exitUnknown},
		{Result: resultHeld, Error: &lineError{Code: "stored_error"}, exit: exitUnknown},
		{Result: resultRejected, Status: 401, Error: &lineError{Code: "refused"}, exit: exitRefused},
		{Result: resultUnknown, Error: &lineError{Code: "abandoned"}, exit: exitUnknown},
		{Result: resultUnknown, Error: &lineError{Code: "no_answer"}, exit: exitUnknown},
		{Result: resultDuplicate, OfRow: 1, Status: 201, Source: "wire", Attempts: 2},
	}
}
