package explore

import (
	"flag"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

// long makes TestNoHistoryBreaks search within the bounds of the command.
var long = flag.Bool("long", false, "search within larger bounds")

// most bounds each search.
var most = flag.Int("most", 200_000_000, "the most states of a search")

// until ends each search after that many states, without an error.
var until = flag.Int("until", testrun.N(5_000, 1<<62), "end each search after that many states")

// first lets the searches run one after the other, and ends them all with the first history that breaks an invariant.
var first = flag.Bool("first", false, "end with the first history that breaks an invariant")

// TestNoHistoryBreaks: no history within the bounds breaks an invariant.
func TestNoHistoryBreaks(t *testing.T) {
	t.Parallel()
	for _, s := range Slices(*long) {
		found := false
		t.Run(s.Name, func(t *testing.T) {
			if !*first {
				t.Parallel()
			}
			start := time.Now()
			r, err := s.Search(min(*most, *until))
			if err != nil && *until > *most {
				t.Error(err)
			}
			if found = r.Broken != ""; found {
				t.Error("\n" + r.Broken)
			}
			t.Logf("%d states, %d events deep, in %v", r.States, r.Depth, time.Since(start).Round(time.Millisecond))
		})
		if *first && found {
			return
		}
	}
}
