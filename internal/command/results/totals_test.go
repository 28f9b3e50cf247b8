package results

import (
	"testing"
)

// A duplicate that is held is held; what is in doubt is pending only where somebody goes on with it.
func TestClassOfLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		l    Line
		want Class
	}{
		{Line{Result: Duplicate, State: "held"}, ClassHeld}, {Line{Result: Duplicate, OfRow: 3, State: "held"}, "duplicate"},
		{Line{Result: Duplicate}, "duplicate"}, {Line{Result: Unknown, GoesOn: true}, ClassPending}, {Line{Result: Unknown}, ClassUnknown},
		{Line{Result: Mismatch, State: "held"}, "mismatch"}, {Line{Result: Held}, ClassHeld}, {Line{Result: Done}, "done"},
	} {
		if got := c.l.Class(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.l, got, c.want)
		}
	}
}
