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
		is     error  // its verdict
	}{
		"pending":            {func(*persist.Record) {}, "", nil},
		"sent":               {func(r *persist.Record) { r.MaybeSent, r.SendBefore = true, now.Add(-time.Second) }, "", nil},
		"succeeded":          {func(r *persist.Record) { confirm(r, 201) }, "", nil},
		"accepted":           {func(r *persist.Record) { confirm(r, 202) }, "", nil},
		"done already":       {func(r *persist.Record) { confirm(r, 409); r.Answer.AlreadyDone = true }, "", nil},
		"done and swept":     {func(r *persist.Record) { confirm(r, 409); r.Effect = persist.EffectHappened; r.Strip() }, "", nil},
		"refused":            {func(r *persist.Record) { confirm(r, 402) }, "refused with 402", persist.ErrFinal},
		"refused and swept":  {func(r *persist.Record) { confirm(r, 404); r.Strip() }, "refused with 404", persist.ErrFinal},
		"no status":          {func(r *persist.Record) { r.State = persist.StateConfirmed }, "confirmed", persist.ErrFinal},
		"settled, happened":  {func(r *persist.Record) { r.State, r.Effect = persist.StateSettled, persist.EffectHappened }, "", nil},
		"settled, absent":    {func(r *persist.Record) { r.State, r.Effect = persist.StateSettled, persist.EffectAbsent }, "absent", persist.ErrNoEffect},
		"abandoned":          {func(r *persist.Record) { r.State = persist.StateAbandoned }, "abandoned", persist.ErrOutcomeUnknown},
		"mismatched":         {func(r *persist.Record) { r.State = persist.StateMismatched }, "mismatched", persist.ErrFinal},
		"held":               {func(r *persist.Record) { r.State, r.HoldReason = persist.StateHeld, persist.HoldUndo }, "held: undo", persist.ErrOutcomeUnknown},
		"not enqueued":       {func(r *persist.Record) { r.Enqueued = false }, "a call of Do", persist.ErrOutcomeUnknown},
		"late":               {func(r *persist.Record) { r.SendBefore = now.Add(-time.Second) }, "in time", persist.ErrOutcomeUnknown},
		"another request":    {func(r *persist.Record) { r.Fingerprint[0]++ }, "another request", persist.ErrOutcomeUnknown},
		"another key":        {func(r *persist.Record) { r.Key = "l" }, "another request", persist.ErrOutcomeUnknown},
		"another, succeeded": {func(r *persist.Record) { r.Fingerprint[0]++; confirm(r, 201) }, "another request", persist.ErrFinal},
		"another, refused":   {func(r *persist.Record) { r.Fingerprint[0]++; confirm(r, 402) }, "Key.Generation", persist.ErrFinal},
		"another, abandoned": {func(r *persist.Record) { r.Fingerprint[0]++; r.State = persist.StateAbandoned }, "another request", persist.ErrOutcomeUnknown},
		"another, absent": {func(r *persist.Record) {
			r.Fingerprint[0]++
			r.State, r.Effect = persist.StateSettled, persist.EffectAbsent
		}, "Key.Generation", persist.ErrFinal},
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
		for _, verdict := range []error{persist.ErrNoEffect, persist.ErrFinal, persist.ErrOutcomeUnknown} {
			if errors.Is(err, verdict) != (verdict == c.is) {
				t.Errorf("%s: %v, want the verdict %v", name, err, c.is)
			}
		}
		existing.Carrier = persist.CarrierSealed
		if err := existing.CheckRepeat(&rec); !errors.Is(err, persist.ErrSealed) || !errors.Is(err, persist.ErrOutcomeUnknown) {
			t.Errorf("%s, sealed: %v", name, err)
		}
	}
}

// confirm ends a record with an answer of this status.
func confirm(r *persist.Record, status int) {
	r.State, r.Answer = persist.StateConfirmed, &persist.Answer{Status: status}
}
