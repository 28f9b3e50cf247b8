package batch

import (
	"errors"
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/results"
)

// TestUnrecordedIsNamed: rows that have ended, and whose ends the journal could not write, are named beside the done; not where the output alone has failed.
func TestUnrecordedIsNamed(t *testing.T) {
	t.Parallel()
	lost := []results.Placed{{Key: "a", Result: results.Done}, {Key: "b", Result: results.Unknown}, {Key: "c", Result: results.Done}, {Key: "d", Result: results.Declined}}
	const then = " may not be recorded as that, since the journal could not be written, and are pending then: mend it, and run the same command again, which goes on with them under the same keys"
	for name, c := range map[string]struct {
		lost  []results.Placed
		flush error
		want  []string
	}{
		"the journal fails": {lost, errors.New("no space"), []string{"2 of the done" + then, "1 of the declined" + then}},
		"the output fails":  {lost, nil, nil},
		"none is lost":      {nil, errors.New("no space"), nil},
	} {
		b := &batch{}
		b.countUnrecorded(c.lost, func() error { return c.flush })
		if got := b.tally.NextSteps("j.db", 1); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
