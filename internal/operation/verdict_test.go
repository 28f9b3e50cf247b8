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

// TestToldStanding: no error says a refusal or an absence of what an event of the API proves, and of what was erased with the name of another one in its place.
func TestToldStanding(t *testing.T) {
	t.Parallel()
	refused := persist.Record{State: persist.StateConfirmed, Effect: persist.EffectRefused}
	absent := persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent}
	happened := persist.Record{State: persist.StateConfirmed, Effect: persist.EffectHappened}
	for name, c := range map[string]struct {
		change func(*persist.Record)
		ended  bool
	}{
		"as it is":            {func(*persist.Record) {}, false},
		"replaced":            {func(rec *persist.Record) { rec.ReplacedBy = "next" }, false},
		"erased":              {func(rec *persist.Record) { rec.Erased = true }, false},
		"erased and replaced": {func(rec *persist.Record) { rec.Erased, rec.ReplacedBy = true, "a digest" }, true},
		"proven":              {func(rec *persist.Record) { rec.Evidence = &persist.Evidence{} }, true},
	} {
		for _, rec := range []persist.Record{refused, absent, happened} {
			c.change(&rec)
			want := StandingOf(&rec)
			if c.ended && rec.Effect != persist.EffectHappened {
				want = Ended
			}
			if got := ToldStanding(&rec); got != want {
				t.Errorf("%s, %s: %d, want %d", rec.Effect, name, got, want)
			}
		}
	}
}

// TestTellsMoved: an act that came too late is told how the operation ended, but not that it had no effect.
func TestTellsMoved(t *testing.T) {
	t.Parallel()
	for s := range standings {
		if s.TellsMoved() == (s == Absent) {
			t.Errorf("standing %d: %t", s, s.TellsMoved())
		}
	}
}

// TestStandings: how a record or an answer stands.
func TestStandings(t *testing.T) {
	t.Parallel()
	for want, rec := range map[Standing]persist.Record{
		Open: {State: persist.StateHeld}, Abandoned: {State: persist.StateAbandoned}, Happened: {State: persist.StateSettled, Effect: persist.EffectHappened},
		Absent: {State: persist.StateSettled, Effect: persist.EffectAbsent}, Ended: {State: persist.StateAbandoned, Erased: true},
		Succeeded: {State: persist.StateConfirmed, Effect: persist.EffectHappened, Erased: true},
	} {
		if got := StandingOf(&rec); got != want {
			t.Errorf("%v %s: %d, want %d", rec.State, rec.Effect, got, want)
		}
	}
	for name, c := range map[string]struct {
		status               int
		alreadyDone, refused bool
		want                 Standing
	}{
		"a success": {201, false, false, Succeeded}, "a 202": {202, false, false, Accepted}, "a 402": {402, false, false, Refused},
		"refused by its body": {200, false, true, Refused}, "done before": {409, true, false, Succeeded},
	} {
		if got := Answered(c.status, c.alreadyDone, c.refused); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestContradictedAbsence: an absence that an event of the API contradicts is an end of which the effect is not known.
func TestContradictedAbsence(t *testing.T) {
	t.Parallel()
	rec := persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent}
	if got := StandingOf(&rec); got != Absent {
		t.Errorf("standing %d, want Absent", got)
	}
	rec.Evidence = &persist.Evidence{Event: "e"}
	if got := StandingOf(&rec); got != Ended {
		t.Errorf("with evidence: standing %d, want Ended", got)
	}
}
