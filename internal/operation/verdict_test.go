package operation

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// A verdict may claim less than is true, and never more: what each standing rules out is ruled out for every call.
func TestNoVerdictClaimsTooMuch(t *testing.T) {
	t.Parallel()
	for s := range standings + 1 {
		for k := range knowledges + 1 {
			v := Judge(s, k)
			nothingIs := s == None && k != KeyOnly || s == Absent // the only proofs of absence
			switch {
			case v == NoEffect && !nothingIs:
				t.Errorf("standing %d, knowledge %d: no effect", s, k)
			case v == Final && (s == Unclear || s == None || s == Open || s == Abandoned):
				t.Errorf("standing %d, knowledge %d: final", s, k)
			case v != Unknown && (k == Keyless && s != None || s >= standings || k >= knowledges):
				t.Errorf("standing %d, knowledge %d: %d, want unknown", s, k, v)
			case v != Unknown && k == Incomparable:
				t.Errorf("standing %d, requests that cannot be compared: %d, want unknown", s, v)
			case v == NoEffect && s == Absent && k == Other:
				t.Error("another request under a key that was settled as absent: no effect")
			}
			if effect := v.Effect(s); v == Unknown && effect != persist.EffectUnknown || v == NoEffect && effect != persist.EffectAbsent {
				t.Errorf("standing %d, knowledge %d: verdict %d with effect %q", s, k, v, effect)
			}
		}
	}
}

// The standing of a record, and what its verdict says of the effect to a call that has the same request, and another one.
func TestVerdictOnRecords(t *testing.T) {
	t.Parallel()
	answered := func(status int, done bool) persist.Record {
		return persist.Record{State: persist.StateConfirmed, Answer: &persist.Answer{Status: status, AlreadyDone: done}}
	}
	settled := func(e persist.Effect) persist.Record { return persist.Record{State: persist.StateSettled, Effect: e} }
	for name, r := range map[string]struct {
		rec         persist.Record
		same, other Verdict
		effect      persist.Effect // of a Final verdict
	}{
		"pending":              {persist.Record{}, Unknown, Unknown, ""},
		"held":                 {persist.Record{State: persist.StateHeld}, Unknown, Unknown, ""},
		"held with a 402":      {persist.Record{State: persist.StateHeld, Answer: &persist.Answer{Status: 402}}, Unknown, Unknown, ""},
		"201":                  {answered(201, false), Final, Final, persist.EffectHappened},
		"202":                  {answered(202, false), Final, Final, persist.EffectHappened},
		"303":                  {answered(303, false), Final, Final, persist.EffectHappened},
		"402":                  {answered(402, false), Final, Final, persist.EffectRefused},
		"409, done already":    {answered(409, true), Final, Final, persist.EffectHappened},
		"201, swept":           {persist.Record{State: persist.StateConfirmed, Status: 201, Swept: true}, Final, Final, persist.EffectHappened},
		"404, swept":           {persist.Record{State: persist.StateConfirmed, Status: 404, Swept: true}, Final, Final, persist.EffectRefused},
		"no status":            {persist.Record{State: persist.StateConfirmed}, Final, Final, persist.EffectUnknown},
		"mismatched":           {persist.Record{State: persist.StateMismatched, Answer: &persist.Answer{Status: 422}}, Final, Final, persist.EffectUnknown},
		"settled as happened":  {settled(persist.EffectHappened), Final, Final, persist.EffectHappened},
		"settled as absent":    {settled(persist.EffectAbsent), NoEffect, Final, persist.EffectAbsent},
		"settled as what else": {settled("maybe"), Final, Final, persist.EffectUnknown},
		"abandoned":            {persist.Record{State: persist.StateAbandoned}, Unknown, Unknown, ""},
		"no known state":       {persist.Record{State: 77}, Unknown, Unknown, ""},
	} {
		s := StandingOf(&r.rec)
		if same, other := Judge(s, Same), Judge(s, Other); same != r.same || other != r.other {
			t.Errorf("%s: %d and %d, want %d and %d", name, same, other, r.same, r.other)
		}
		if effect := Final.Effect(s); effect != r.effect {
			t.Errorf("%s: effect %q, want %q", name, effect, r.effect)
		}
	}
}

// TestToldByResult: of a caller's own results, an effect and a refusal tell the end, and nothing else does.
func TestToldByResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effect persist.Effect
		status int
		done   bool
		want   Standing
	}{
		"happened":         {persist.EffectHappened, 303, false, Succeeded},
		"taken on":         {persist.EffectHappened, 202, false, Accepted},
		"done before":      {persist.EffectHappened, 409, true, Succeeded},
		"refused":          {persist.EffectRefused, 402, false, Refused},
		"refused in a 200": {persist.EffectRefused, 200, false, Refused},
		"absent":           {persist.EffectAbsent, 200, false, Unclear},
		"not known":        {persist.EffectUnknown, 200, false, Unclear},
	} {
		if got := Told(c.effect, c.status, c.done); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
