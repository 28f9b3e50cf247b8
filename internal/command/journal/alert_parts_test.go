package journal

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// The bound is an age: of just that age nothing is told.
func TestAlertAtItsBound(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for age, want := range map[time.Duration]int{time.Hour: 0, time.Hour + 1: 1} {
		a := alert{flags: &alertFlags{over: time.Hour, overSet: func() bool { return true }, held: -1, pending: -1}, now: now}
		a.add(&persist.Record{State: persist.StatePending, Created: now.Add(-age)})
		a.add(&persist.Record{State: persist.StateConfirmed, Created: now.Add(-48 * time.Hour)})
		if a.over != want || (a.conclude("j") != nil) != (want > 0) {
			t.Errorf("%v: %d over the bound, want %d", age, a.over, want)
		}
	}
}

func TestLabelText(t *testing.T) {
	t.Parallel()
	if got := labelText("a\"b\\c\nd"); got != `a\"b\\c\nd` {
		t.Errorf("label %q", got)
	}
}
