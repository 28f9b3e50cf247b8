package known_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/persist"
)

// TestAside: pauses grow up to a bound, end by themselves and with a send, and are bounded in number.
func TestAside(t *testing.T) {
	t.Parallel()
	var a known.Aside
	id, now := persist.ID{Key: "k"}, time.Unix(1000, 0)
	for i, want := range []time.Duration{1, 2, 4, 5, 5} {
		a.Note(id, now, time.Second, 5*time.Second)
		if until := a.Until(id, now); until != now.Add(want*time.Second) || !a.Until(persist.ID{Key: "l"}, now).IsZero() {
			t.Errorf("time %d: until %v", i, until)
		}
		now = now.Add(want * time.Second)
		if !a.Until(id, now).IsZero() {
			t.Errorf("time %d: left alone for too long", i)
		}
	}
	a.Drop(id)
	if a.Note(id, now, time.Second, 5*time.Second); a.Until(id, now) != now.Add(time.Second) {
		t.Error("what was sent is remembered")
	}
	a.Drop(id)
	left := 0
	for i := range 10_010 {
		a.Note(persist.ID{Key: fmt.Sprint(i)}, now, time.Hour, time.Hour)
	}
	for i := range 10_010 {
		if !a.Until(persist.ID{Key: fmt.Sprint(i)}, now).IsZero() {
			left++
		}
	}
	if left != 10_000 {
		t.Errorf("%d are kept", left)
	}
}
