package acts

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestFinalStatus: a person names as the API's answer only what ends an operation.
func TestFinalStatus(t *testing.T) {
	for status, want := range map[int]bool{199: false, 200: true, 299: true, 300: false, 302: false, 303: true, 304: false, 399: false, 400: true, 499: true, 500: false, 503: false} {
		if got := IsFinalStatus(status); got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
	}
}

// TestMayAssign: an operation is assigned if nothing has it, nothing stands beside it, and it is as it was seen. Whoever hears of a change hears of that first.
func TestMayAssign(t *testing.T) {
	t.Parallel()
	for bits := range 16 {
		is := func(n int) bool { return bits>>n&1 == 1 }
		op, a := operation.Op{Phase: operation.Phase{Erased: is(1)}}, Assigning{Moved: is(0), Leased: is(2), Beside: is(3)}
		want := MayAct
		for n, why := range [...]Refusal{HasMoved, IsErased, IsLeased, IsBeside} {
			if is(n) {
				want = why
				break
			}
		}
		if got := a.MayAssign(&op); got != want {
			t.Errorf("%+v, erased %t: %d, want %d", a, op.Erased, got, want)
		}
	}
}

// TestSettlesUnreported: what is settled as happened under a generated key, and told to no caller, stops a repeat without a key.
func TestSettlesUnreported(t *testing.T) {
	t.Parallel()
	for _, generated := range []bool{false, true} {
		for _, told := range []bool{false, true} {
			for _, effect := range []persist.Effect{persist.EffectHappened, persist.EffectAbsent} {
				op := operation.Op{KeyFacts: operation.KeyFacts{Generated: generated}}
				if got := SettlesUnreported(&op, effect, told); got != (generated && !told && effect == persist.EffectHappened) {
					t.Errorf("generated %t, told %t, %s: %t", generated, told, effect, got)
				}
			}
		}
	}
}

// TestMayEnd: a Settle or an Abandon ends what has not ended, and what nobody else has. Absent is not said while a send may be on its way, and nothing
// else than an event proves.
func TestMayEnd(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	held := operation.Op{Phase: operation.Phase{State: persist.StateHeld, Standing: operation.Open}}
	proven, sending, deserted := held, held, held
	proven.Witnessed, sending.SendUntil, deserted.Deserted = true, now.Add(1), now.Add(1)
	absent, happened := Settled(held, persist.EffectAbsent, 0), Settled(held, persist.EffectHappened, 0)
	for name, c := range map[string]struct {
		e    Ending
		op   operation.Op
		want Refusal
	}{
		"held":                            {Ending{}, held, MayAct},
		"moved":                           {Ending{Moved: true}, held, HasMoved},
		"moved, and happened":             {Ending{Moved: true}, happened, HasMoved},
		"moved, and absent":               {Ending{Moved: true}, absent, HasEnded},
		"absent":                          {Ending{}, absent, HasEnded},
		"happened":                        {Ending{}, happened, HasEnded},
		"leased":                          {Ending{Leased: true}, held, IsLeased},
		"ended, and leased":               {Ending{Leased: true}, happened, HasEnded},
		"proven":                          {Ending{}, proven, IsWitnessed},
		"proven, as absent":               {Ending{Absent: true}, proven, IsWitnessed},
		"proven, as happened":             {Ending{Happened: true}, proven, MayAct},
		"proven, and leased":              {Ending{Leased: true}, proven, IsLeased},
		"on its way, as absent":           {Ending{Absent: true, Over: true}, sending, IsSending},
		"on its way, of its owner":        {Ending{Absent: true}, sending, MayAct},
		"on its way, as happened":         {Ending{Happened: true, Over: true}, sending, MayAct},
		"on its way, abandoned":           {Ending{Over: true}, sending, MayAct},
		"on its way, to be undone":        {Ending{Undone: true, Over: true}, sending, IsSending},
		"nothing on its way to be undone": {Ending{Undone: true, Over: true}, held, MayAct},
		"on its way of another":           {Ending{Absent: true}, deserted, IsSending},
		"absent, and nothing on its way":  {Ending{Absent: true, Over: true}, held, MayAct},
	} {
		if c.e.Now = now; c.e.MayEnd(&c.op) != c.want {
			t.Errorf("%s: %d, want %d", name, c.e.MayEnd(&c.op), c.want)
		}
	}
	sending.SendUntil = now
	if got := (Ending{Absent: true, Over: true, Now: now}).MayEnd(&sending); got != MayAct {
		t.Errorf("at the end of the send: %d", got)
	}
}

// TestEnded: an end by a person is no hold, is not due, and has the person's answer in the place of an earlier one.
func TestEnded(t *testing.T) {
	t.Parallel()
	held := operation.Op{
		Phase:   operation.Phase{State: persist.StateHeld, Hold: persist.HoldUnclear, Standing: operation.Open},
		Sending: operation.Sending{NextAttempt: time.Unix(1, 0)}, Recorded: operation.Recorded{Answered: true, Status: 503},
	}
	ended := operation.Phase{State: persist.StateSettled, Standing: operation.Happened}
	if got, want := Settled(held, persist.EffectHappened, 201), (operation.Op{Phase: ended, Recorded: operation.Recorded{Answered: true, Status: 201}}); got != want {
		t.Errorf("settled with an answer: %+v", got)
	}
	if got, want := Settled(held, persist.EffectHappened, 0), (operation.Op{Phase: ended}); got != want {
		t.Errorf("settled without an answer: %+v", got)
	}
	if got, want := Abandoned(held), (operation.Op{Phase: operation.Phase{State: persist.StateAbandoned, Standing: operation.Abandoned}, Recorded: held.Recorded}); got != want {
		t.Errorf("abandoned: %+v", got)
	}
}
