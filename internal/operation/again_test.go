package operation_test

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

func TestMayAskAgain(t *testing.T) {
	t.Parallel()
	for status, done := range map[int]bool{200: true, 201: true, 202: true, 303: true, 400: false, 402: false, 409: false} {
		for _, stored := range []bool{true, false} {
			if got := operation.MayAskAgain(&persist.Answer{Status: status, Stored: stored}); got != (done && stored) {
				t.Errorf("%d, stored %t: %t", status, stored, got)
			}
		}
	}
	if !operation.MayAskAgain(&persist.Answer{Status: 409, Stored: true, AlreadyDone: true}) {
		t.Error("what was already done may not be asked for again")
	}
}

// TestAsksAgain: inside the window, by a client that is able to, unless its policy says never.
func TestAsksAgain(t *testing.T) {
	t.Parallel()
	now := time.Unix(100_000, 0)
	for name, c := range map[string]struct {
		sent        time.Time
		able, never bool
		want        bool
	}{
		"inside":       {now.Add(-time.Hour), true, false, true},
		"not able":     {now.Add(-time.Hour), false, false, false},
		"never":        {now.Add(-time.Hour), true, true, false},
		"too late":     {now.Add(-25 * time.Hour), true, false, false},
		"clock behind": {now.Add(time.Hour), true, false, false},
	} {
		client := operation.Client{ClockSkew: time.Minute, NeverAsksAgain: c.never}
		op := operation.Op{Sending: operation.Sending{FirstSent: c.sent, Window: 24 * time.Hour}}
		if got := client.AsksAgain(&op, now, c.able); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
