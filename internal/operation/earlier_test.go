package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestEarlierEvents: an event created more than an hour before the first send, or before the begin of what was not sent, is about something else.
// It says nothing of what has ended, either.
func TestEarlierEvents(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sent := persist.Record{Created: at.Add(-24 * time.Hour), FirstSent: at, MaybeSent: true, State: persist.StatePending}
	refused := persist.Record{Created: at, Sends: 1, State: persist.StatePending} // and unmarked
	for name, c := range map[string]struct {
		rec     persist.Record
		created time.Time
		want    bool
	}{
		"later": {sent, at.Add(time.Second), false}, "an hour before": {sent, at.Add(-time.Hour), false},
		"more than an hour before": {sent, at.Add(-time.Hour - 1), true}, "the event does not say": {sent, time.Time{}, false},
		"refused before": {refused, at.Add(-time.Hour), false}, "refused before, earlier": {refused, at.Add(-time.Hour - 1), true},
	} {
		if got := IsEarlier(&c.rec, c.created); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for _, op := range []Op{{MaybeSent: true, Standing: Open}, {State: persist.StateConfirmed, Standing: Refused}} {
		if got := op.Testimony(true); got != TestifiesNothing {
			t.Errorf("%v: %d, want nothing", op.State, got)
		}
	}
}
