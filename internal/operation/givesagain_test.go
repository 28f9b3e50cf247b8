package operation_test

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
)

// TestGivesAgain: a stored answer comes again until the last tenth of the window, by a clock that has not gone back.
func TestGivesAgain(t *testing.T) {
	t.Parallel()
	sent := time.Unix(50_000, 0)
	op := operation.Op{Sending: operation.Sending{FirstSent: sent, Window: 10 * time.Hour}}
	for age, want := range map[time.Duration]bool{-1: false, 0: true, 9 * time.Hour: true, 9*time.Hour + 1: false, 11 * time.Hour: false} {
		if got := op.GivesAgain(true, sent.Add(age)); got != want {
			t.Errorf("%v after the first send: %t, want %t", age, got, want)
		}
		if op.GivesAgain(false, sent.Add(age)) {
			t.Errorf("%v after the first send: an answer that is not stored comes again", age)
		}
	}
}
