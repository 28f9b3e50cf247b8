package journal

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// What a client must have to go on with an operation is told by its name, also where the operation cannot be read.
func TestNeedsText(t *testing.T) {
	t.Parallel()
	for want, rec := range map[string]persist.Record{
		"Authorize, region eu, profile own@2":   {Omitted: []string{"Authorization"}, Region: "eu", Profile: "own", ProfileVersion: "2"},
		"the credential that it was begun with": {Credential: "sha256:ab"},
		"the key k1+k2 of the seal":             {Carrier: persist.CarrierSealed, SealedNeeds: "1 seal=k1+k2 hidden=x"},
		"to be sealed, profile own@2":           {Carrier: persist.CarrierSealed, SealedNeeds: "1 plain profile=own@2"},
		"a newer version":                       {Carrier: persist.CarrierSealed, SealedNeeds: "2 moon=full"},
	} {
		if got := needsText(&rec, nil); got != want {
			t.Errorf("%+v: %q, want %q", rec, got, want)
		}
	}
}

// Times are relative on a terminal, and carry their zone anywhere else.
func TestClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "0s ago", -59 * time.Second: "59s ago", -90 * time.Minute: "1h ago", -72 * time.Hour: "3d ago", 5 * time.Minute: "in 5m",
	} {
		if got := (clock{now: now, relative: true}).when(now.Add(d), "-"); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := (clock{now: now}).when(now.Add(time.Hour), "-"); got != "2026-11-21T21:00:00Z" {
		t.Errorf("elsewhere: %q", got)
	}
	if got := (clock{now: now}).when(time.Time{}, "now"); got != "now" {
		t.Errorf("no time: %q", got)
	}
}
