package journal

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/gauges"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
)

// counter is a journal that counts, and lists nothing.
type counter struct {
	persist.Journal
	counts persist.Counts
}

func (c counter) Count(context.Context) (persist.Counts, error) { return c.counts, nil }

func (counter) List(context.Context, persist.Query) iter.Seq2[persist.Record, error] {
	panic("a record is read")
}

// A quiet alert reads records only if their number is wanted: of a selection, or beyond the bound of ages.
func TestAlertCounted(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ses := &session.Session{Journal: counter{counts: persist.Counts{Pending: 2, Held: map[persist.HoldReason]int{persist.HoldNoKey: 3}, Oldest: now.Add(-time.Hour)}}}
	all := selection{query: persist.Query{AllAccounts: true, States: []persist.State{persist.StatePending, persist.StateHeld}}}
	some, other := all, all
	some.origin, other.query.AllAccounts = "https://a:443", false
	over := func(d time.Duration) alertFlags {
		return alertFlags{quiet: true, over: d, overSet: func() bool { return d != 0 }, held: 2, pending: -1, refused: -1}
	}
	loud := over(0)
	loud.quiet = false
	for name, c := range map[string]struct {
		flags alertFlags
		sel   selection
		ses   *session.Session
		want  bool
	}{
		"quiet": {over(0), all, ses, true}, "at the bound": {over(time.Hour), all, ses, true}, "beyond the bound": {over(time.Hour - 1), all, ses, false},
		"not quiet": {loud, all, ses, false}, "of an origin": {over(0), some, ses, false}, "of an account": {over(0), other, ses, false},
		"a journal that does not count": {over(0), all, &session.Session{Journal: struct{ persist.Journal }{}}, false},
	} {
		a := &alert{flags: &c.flags, now: now}
		done, err := a.counted(t.Context(), c.ses, c.sel)
		if err != nil || done != c.want {
			t.Errorf("%s: counted %t, error %v; want %t", name, done, err, c.want)
		}
		if done && (a.pending != 2 || a.held != 3 || a.conclude(place.Place{Path: "j", Name: "j", Arg: "j"}) == nil) {
			t.Errorf("%s: %d pending, %d held; want 2, and 3, of which --fail-held tells", name, a.pending, a.held)
		}
	}
}

// The bound is an age: of just that age nothing is told.
func TestAlertAtItsBound(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for age, want := range map[time.Duration]int{time.Hour: 0, time.Hour + 1: 1} {
		a := alert{flags: &alertFlags{over: time.Hour, overSet: func() bool { return true }, held: -1, pending: -1, refused: -1}, now: now}
		a.add(&persist.Record{State: persist.StatePending, Created: now.Add(-age)})
		a.add(&persist.Record{State: persist.StateConfirmed, Created: now.Add(-48 * time.Hour)})
		if a.over != want || (a.conclude(place.Place{Path: "j", Name: "j", Arg: "j"}) != nil) != (want > 0) {
			t.Errorf("%v: %d over the bound, want %d", age, a.over, want)
		}
	}
}

func TestLabelText(t *testing.T) {
	t.Parallel()
	if got := gauges.LabelText("a\"b\\c\nd"); got != `a\"b\\c\nd` {
		t.Errorf("label %q", got)
	}
}
