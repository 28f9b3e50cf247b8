package persist_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// A transaction that meets a record may be committed only if Run sends that, or it took place.
func TestCheckRepeat(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		change func(*persist.Record)
		says   string // of the error; empty is none
	}{
		"pending":           {func(*persist.Record) {}, ""},
		"sent":              {func(r *persist.Record) { r.MaybeSent, r.SendBefore = true, now.Add(-time.Second) }, ""},
		"confirmed":         {func(r *persist.Record) { r.State, r.Enqueued = persist.StateConfirmed, false }, ""},
		"settled, happened": {func(r *persist.Record) { r.State, r.Effect = persist.StateSettled, persist.EffectHappened }, ""},
		"settled, absent":   {func(r *persist.Record) { r.State, r.Effect = persist.StateSettled, persist.EffectAbsent }, "absent"},
		"abandoned":         {func(r *persist.Record) { r.State = persist.StateAbandoned }, "abandoned"},
		"mismatched":        {func(r *persist.Record) { r.State = persist.StateMismatched }, "mismatched"},
		"held":              {func(r *persist.Record) { r.State, r.HoldReason = persist.StateHeld, persist.HoldUndo }, "held: undo"},
		"not enqueued":      {func(r *persist.Record) { r.Enqueued = false }, "a call of Do"},
		"late":              {func(r *persist.Record) { r.SendBefore = now.Add(-time.Second) }, "in time"},
		"another request":   {func(r *persist.Record) { r.Fingerprint[0]++ }, "another request"},
		"another key":       {func(r *persist.Record) { r.Key = "l" }, "another request"},
	} {
		rec := valid()
		rec.Created, rec.Enqueued, rec.SendBefore = now, true, now.Add(time.Hour)
		existing := rec.Clone()
		existing.Created = now.Add(-time.Minute)
		c.change(&existing)
		err := existing.CheckRepeat(&rec)
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, persist.ErrTaken) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		existing.Carrier = persist.CarrierSealed
		if err := existing.CheckRepeat(&rec); !errors.Is(err, persist.ErrSealed) {
			t.Errorf("%s, sealed: %v", name, err)
		}
	}
}
