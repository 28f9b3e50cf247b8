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
		"pending":                 {func(*persist.Record) {}, "", nil},
		"sent":                    {func(r *persist.Record) { r.MaybeSent, r.SendBefore = true, now.Add(-time.Second) }, "", nil},
		"succeeded":               {func(r *persist.Record) { confirm(r, 201) }, "", nil},
		"accepted":                {func(r *persist.Record) { confirm(r, 202) }, "", nil},
		"done already":            {func(r *persist.Record) { confirm(r, 409); r.Answer.AlreadyDone = true }, "", nil},
		"done and swept":          {func(r *persist.Record) { confirm(r, 409); r.Effect = persist.EffectHappened; r.Strip() }, "", nil},
		"refused, told":           {func(r *persist.Record) { confirm(r, 402); r.Told = true }, "refused with 402", persist.ErrFinal},
		"refused and swept, told": {func(r *persist.Record) { confirm(r, 404); r.Told = true; r.Strip() }, "refused with 404", persist.ErrFinal},
		"refused, not told":       {func(r *persist.Record) { confirm(r, 402) }, "no caller was told", persist.ErrOutcomeUnknown},
		"refused, replaced":       {func(r *persist.Record) { confirm(r, 402); r.Told, r.ReplacedBy = true, "k:gen=2" }, `begun anew as "k:gen=2"`, persist.ErrOutcomeUnknown},
		"no status":               {func(r *persist.Record) { r.State = persist.StateConfirmed }, "confirmed", persist.ErrFinal},
		"settled, happened":       {func(r *persist.Record) { r.State, r.Effect = persist.StateSettled, persist.EffectHappened }, "", nil},
		"absent, told": {func(r *persist.Record) {
			r.State, r.Effect, r.Told = persist.StateSettled, persist.EffectAbsent, true
		}, "absent", persist.ErrNoEffect},
		"absent, not told": {func(r *persist.Record) {
			r.State, r.Effect = persist.StateSettled, persist.EffectAbsent
		}, "no caller was told", persist.ErrOutcomeUnknown},
		"absent, replaced": {func(r *persist.Record) {
			r.State, r.Effect, r.ReplacedBy = persist.StateSettled, persist.EffectAbsent, "other"
		}, `begun anew as "other"`, persist.ErrOutcomeUnknown},
		"abandoned":               {func(r *persist.Record) { r.State = persist.StateAbandoned }, "abandoned", persist.ErrOutcomeUnknown},
		"mismatched":              {func(r *persist.Record) { r.State = persist.StateMismatched }, "mismatched", persist.ErrFinal},
		"held":                    {func(r *persist.Record) { r.State, r.HoldReason = persist.StateHeld, persist.HoldUndo }, "held: undo", persist.ErrOutcomeUnknown},
		"not enqueued":            {func(r *persist.Record) { r.Enqueued = false }, "a call of Do", persist.ErrOutcomeUnknown},
		"late":                    {func(r *persist.Record) { r.SendBefore = now.Add(-time.Second) }, "in time", persist.ErrOutcomeUnknown},
		"another request":         {func(r *persist.Record) { r.Fingerprint[0]++ }, "another request", persist.ErrOutcomeUnknown},
		"another key":             {func(r *persist.Record) { r.Key = "l" }, "another request", persist.ErrOutcomeUnknown},
		"another, succeeded":      {func(r *persist.Record) { r.Fingerprint[0]++; confirm(r, 201) }, "another request", persist.ErrFinal},
		"another, refused":        {func(r *persist.Record) { r.Fingerprint[0]++; confirm(r, 402) }, "Key.Generation", persist.ErrFinal},
		"another, abandoned":      {func(r *persist.Record) { r.Fingerprint[0]++; r.State = persist.StateAbandoned }, "another request", persist.ErrOutcomeUnknown},
		"incomparable":            {func(r *persist.Record) { r.Fingerprint[0]++; r.Recipe = "other" }, "cannot be compared", persist.ErrOutcomeUnknown},
		"incomparable, succeeded": {func(r *persist.Record) { r.Fingerprint[0]++; r.Recipe = "other"; confirm(r, 201) }, "cannot be compared", persist.ErrOutcomeUnknown},
		"incomparable, refused":   {func(r *persist.Record) { r.Fingerprint[0]++; r.Recipe = "other"; confirm(r, 402) }, "cannot be compared", persist.ErrOutcomeUnknown},
		"of another content": {func(r *persist.Record) {
			r.Fingerprint[0]++
			r.Recipe, r.Content = "other", "other"
			confirm(r, 201)
		}, "another request", persist.ErrFinal},
		"refused, contradicted": {func(r *persist.Record) { confirm(r, 402); r.Evidence = &persist.Evidence{Event: "e"} }, "contradicts", persist.ErrFinal},
		"absent, contradicted": {func(r *persist.Record) {
			r.State, r.Effect, r.Evidence = persist.StateSettled, persist.EffectAbsent, &persist.Evidence{Event: "e"}
		}, "contradicts", persist.ErrFinal},
		"another, absent": {func(r *persist.Record) {
			r.Fingerprint[0]++
			r.State, r.Effect = persist.StateSettled, persist.EffectAbsent
		}, "Key.Generation", persist.ErrFinal},
	} {
		rec := valid()
		rec.Created, rec.Enqueued, rec.SendBefore, rec.Content = now, true, now.Add(time.Hour), "content"
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

// TestCheckRepeatOwners: what was begun with other credentials may be another account's, whatever it is and in whatever state.
func TestCheckRepeatOwners(t *testing.T) {
	t.Parallel()
	alice := []persist.Credential{{Name: "Authorization", Digest: "k:alice"}}
	bob := []persist.Credential{{Name: "Authorization", Digest: "k:bob"}}
	for name, c := range map[string]struct {
		theirs, ours []persist.Credential
		generated    bool
		strange      bool
	}{
		"the same":                   {alice, alice, false, false},
		"none":                       {nil, nil, false, false},
		"none, of a made key":        {nil, nil, true, false},
		"others":                     {alice, bob, false, true},
		"others, of a made key":      {alice, bob, true, true},
		"only theirs":                {alice, nil, false, false},
		"only ours":                  {nil, bob, false, false},
		"only theirs, of a made key": {alice, nil, true, true},
		"of another name":            {alice, []persist.Credential{{Name: "X-Api-Key", Digest: "k:bob"}}, false, false},
		"of another journal":         {alice, []persist.Credential{{Name: "Authorization", Digest: "l:bob"}}, false, false},
		"one of two":                 {append(alice[:1:1], persist.Credential{Name: "Cookie", Digest: "k:c"}), append(alice[:1:1], persist.Credential{Name: "Cookie", Digest: "k:d"}), false, true},
	} {
		for state, change := range map[string]func(*persist.Record){
			"pending":         func(*persist.Record) {},
			"succeeded":       func(r *persist.Record) { confirm(r, 201) },
			"refused":         func(r *persist.Record) { confirm(r, 402) },
			"settled, absent": func(r *persist.Record) { r.State, r.Effect = persist.StateSettled, persist.EffectAbsent },
			"another request": func(r *persist.Record) { r.Fingerprint[0]++; confirm(r, 201) },
		} {
			rec := valid()
			rec.Key, rec.Enqueued, rec.Credentials = "order-17", true, c.ours
			existing := rec.Clone()
			existing.Credentials, existing.Generated = c.theirs, c.generated
			plain := existing.Clone()
			plain.Credentials, plain.Generated = c.ours, false
			change(&existing)
			change(&plain)
			err, same := existing.CheckRepeat(&rec), plain.CheckRepeat(&rec)
			if !c.strange {
				if (err == nil) != (same == nil) || err != nil && err.Error() != same.Error() {
					t.Errorf("%s, %s: %v, want %v", name, state, err, same)
				}
				continue
			}
			if !errors.Is(err, persist.ErrTaken) || !errors.Is(err, persist.ErrOutcomeUnknown) || errors.Is(err, persist.ErrFinal) || errors.Is(err, persist.ErrNoEffect) {
				t.Errorf("%s, %s: %v, want an unknown outcome", name, state, err)
				continue
			}
			if text := err.Error(); !strings.Contains(text, "Config.Account") || strings.Contains(text, existing.State.String()) || strings.Contains(text, existing.Key) {
				t.Errorf("%s, %s: %q names no Config.Account, or says more of the operation than that there is one", name, state, text)
			}
		}
	}
}
