package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// TestSettledAs: a settlement, once taken back, leaves an act with its effect, and with the word that a caller was told. The latest one counts.
func TestSettledAs(t *testing.T) {
	t.Parallel()
	for did, rec := range map[string]persist.Record{
		persist.ActAbsentTold: {Effect: persist.EffectAbsent, Told: true}, persist.ActAbsent: {Effect: persist.EffectAbsent},
		persist.ActHappenedTold: {Effect: persist.EffectHappened, Told: true}, persist.ActHappened: {Effect: persist.EffectHappened},
	} {
		if got := SettledAs(&rec); got != did {
			t.Errorf("%v, told %t: %q, want %q", rec.Effect, rec.Told, got, did)
		}
		for _, earlier := range []string{persist.ActAbsentTold, persist.ActAbsent} {
			acts := []persist.Act{{Did: earlier}, {Did: persist.ActReopened}, {Did: did}, {Did: persist.ActReopened}}
			if got := WasTold(acts); got != rec.Told {
				t.Errorf("told of %q after %q: %t", did, earlier, got)
			}
		}
	}
	if WasTold(nil) || WasTold([]persist.Act{{Did: persist.ActAbandoned}}) {
		t.Error("told of no settlement")
	}
}

// TestIsReplacedBy: one that had no effect is replaced by one that took effect, or may.
func TestIsReplacedBy(t *testing.T) {
	t.Parallel()
	for standing, none := range map[Standing]bool{Absent: true, Refused: true, Open: false, Succeeded: false, Abandoned: false} {
		for last, lastNone := range map[Standing]bool{Absent: true, Refused: true, Open: false, Happened: false, Unclear: false} {
			op, by := Op{Standing: standing}, Op{Standing: last}
			if got := op.IsReplacedBy(&by); got != (none && !lastNone) {
				t.Errorf("%v by %v: %t", standing, last, got)
			}
		}
	}
}

// TestRecallOfWhatWasReplaced: nobody gets the answer of a replaced operation without a call.
func TestRecallOfWhatWasReplaced(t *testing.T) {
	t.Parallel()
	rec := persist.Record{State: persist.StateConfirmed, Effect: persist.EffectRefused, Told: true, Answer: &persist.Answer{Status: 402}}
	if !MayRecall(&rec) {
		t.Error("an answer that was told: want true")
	}
	if rec.ReplacedBy = "k:gen=2"; MayRecall(&rec) {
		t.Error("another operation stands in its place: want false")
	}
}

// TestTried: the latest attempt that was sent counts for the clock, and nothing else.
func TestTried(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rec := persist.Record{History: []persist.Attempt{{At: at, Sent: true}, {At: at.Add(time.Hour), Sent: true}, {At: at.Add(2 * time.Hour)}}}
	if op := OpOf(&rec, 0); !op.Tried.Equal(at.Add(time.Hour)) {
		t.Errorf("%v", op.Tried)
	}
	rec.History = rec.History[2:]
	if op := OpOf(&rec, 0); !op.Tried.IsZero() {
		t.Errorf("nothing was sent: %v", op.Tried)
	}
}

// TestCheckedFarBack: a clock far behind the latest send counts as the end of the window: the operation is held, and not left to others.
func TestCheckedFarBack(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	op := Op{State: persist.StatePending, Standing: Open, Protected: true, MaybeSent: true, FirstSent: first, Tried: first.Add(20 * time.Hour), Window: 24 * time.Hour, Pauses: UsualPauses}
	client := Client{AttemptTimeout: time.Second, ClockSkew: time.Minute, MaxAttempts: 3}
	d := NewDrive(op, client, op.Begins(Given{Pass: true}))
	for d.Step() == AskFirst {
		d.Asked(classify.FindingUnclear, Sent{Unsent: true}, false)
	}
	if d.Checked(true, first.Add(2*time.Hour)); d.Step() == Send || d.Proof().Hold != persist.HoldExpired {
		t.Errorf("step %v, hold %q, want it held as expired", d.Step(), d.Proof().Hold)
	}
}
