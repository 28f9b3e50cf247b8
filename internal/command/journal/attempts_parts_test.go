package journal

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// seen is a seeing that knows who is dead.
type seen struct{ dead bool }

func (s seen) Set(rec *persist.Record) {
	if s.dead {
		rec.LeaseOwner = ""
	}
}

// TestAttemptsNotCounted: a plus stands where a process may have made attempts that are not in the record, and nowhere else.
func TestAttemptsNotCounted(t *testing.T) {
	t.Parallel()
	later := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	sent := func(change func(rec *persist.Record)) persist.Record {
		rec := persist.Record{State: persist.StatePending, MaybeSent: true, SendUntil: later, Attempts: 6, Drives: 1}
		change(&rec)
		return rec
	}
	for name, c := range map[string]struct {
		rec          persist.Record
		dead         bool
		file, server string
	}{
		"its run ended":               {sent(func(*persist.Record) {}), false, "6", "6"},
		"held in its run":             {sent(func(r *persist.Record) { r.State, r.HoldReason = persist.StateHeld, persist.HoldStoredError }), false, "6", "6"},
		"never sent":                  {sent(func(r *persist.Record) { r.MaybeSent, r.Attempts, r.Drives = false, 0, 2 }), false, "0", "0"},
		"a second run":                {sent(func(r *persist.Record) { r.Drives = 2 }), false, "6+", "6"},
		"no attempt of its run":       {sent(func(r *persist.Record) { r.Attempts = 0 }), false, "0+", "0"},
		"being sent":                  {sent(func(r *persist.Record) { r.LeaseOwner = "w" }), false, "6+", "6+"},
		"its process died":            {sent(func(r *persist.Record) { r.LeaseOwner, r.Attempts = "w", 0 }), true, "0+", "0+"},
		"it died before its mark":     {sent(func(r *persist.Record) { r.LeaseOwner, r.SendUntil = "w", time.Time{} }), true, "6", "6"},
		"another went on":             {sent(func(r *persist.Record) { r.DesertedUntil, r.Drives = later, 2 }), false, "6+", "6+"},
		"held by journal restored":    {sent(func(r *persist.Record) { r.State, r.HoldReason = persist.StateHeld, persist.HoldRestored }), false, "6+", "6+"},
		"ended":                       {sent(func(r *persist.Record) { r.State, r.Drives = persist.StateConfirmed, 3 }), false, "6", "6"},
		"settled after a death of it": {sent(func(r *persist.Record) { r.State, r.DesertedUntil = persist.StateSettled, later }), false, "6", "6"},
	} {
		rec := c.rec
		look(seen{c.dead}, &rec)
		if got := (clock{}).attempts(&rec); got != c.file {
			t.Errorf("%s: %s in a file, want %s", name, got, c.file)
		}
		if got := (clock{leased: true}).attempts(&rec); got != c.server {
			t.Errorf("%s: %s on a server, want %s", name, got, c.server)
		}
	}
}
