package journal

import (
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestWouldText: a dry run says what the resume does at that moment, also in the last part of a window, in which nobody sends any more.
func TestWouldText(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	sent := func(age time.Duration) persist.Record {
		return persist.Record{MaybeSent: true, FirstSent: now.Add(-age), Window: time.Hour, Protected: true}
	}
	proven, bare := sent(time.Minute), sent(time.Minute)
	bare.Protected = false
	proven.Evidence = &persist.Evidence{}
	for name, c := range map[string]struct {
		rec  persist.Record
		want string
	}{
		"in the window":            {sent(30 * time.Minute), "send"},
		"in its last part":         {sent(time.Hour - time.Minute), "hold it: the server may have forgotten"},
		"past it":                  {sent(2 * time.Hour), "hold it: the server may have forgotten"},
		"without a key":            {bare, "hold it: it may have been sent, and no key protects another send"},
		"before its first send":    {sent(-time.Second), "wait: the clock stands before its first send"},
		"proven":                   {proven, "settle it: an event of the API proves"},
		"too late for a first one": {persist.Record{SendBefore: now.Add(-1)}, "hold it: its time for a first send is over"},
		"in time for it":           {persist.Record{SendBefore: now}, "send"},
		"without credentials":      {persist.Record{Omitted: []string{"Authorization"}}, "fail: it needs Authorization"},
		"of another region":        {persist.Record{Region: "eu"}, `leave it: begun for the region "eu"`},
		"held":                     {persist.Record{State: persist.StateHeld, HoldReason: persist.HoldUnclear}, "wait until it is settled"},
		"due later":                {persist.Record{NextAttempt: now.Add(1)}, "wait until 2026"},
	} {
		known := profile.Draft07()
		c.rec.Profile, c.rec.ProfileVersion, c.rec.Carrier, c.rec.Recipe = known.Name, known.Version, string(profile.Header), "v1"
		if got := (&prospect{from: &session.Sender{}, now: now}).text(c.rec); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
