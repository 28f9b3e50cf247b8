package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// TestRefusalIsNoRepeatOfASuccess: a success that is asked for again, and a 200 whose body refuses: it is not the recorded answer.
func TestRefusalIsNoRepeatOfASuccess(t *testing.T) {
	t.Parallel()
	op := Op{Phase: Phase{State: persist.StateConfirmed, Standing: Succeeded}, KeyFacts: KeyFacts{Protected: true}, Sending: Sending{MaybeSent: true, FirstSent: time.Unix(0, 0), Window: 24 * time.Hour}, Recorded: Recorded{Status: 200}}
	d := NewDrive(op, Client{MaxAttempts: 3}, Given{AskedAgain: true})
	d.Checked(true, time.Unix(9, 0))
	d.Sent(classify.Verdict{Kind: classify.KindFinal, Refused: true}, Sent{Answer: Answer{1, 200}, Sends: 1})
	if r := d.Report(); d.Step() != Over || r.Answered || Judge(r.Standing, Same) != Final {
		t.Errorf("step %d, report %+v; want an error that is final", d.Step(), r)
	}
}

// TestRefusalInABodyMayChange: a 200 whose body refuses and that the server does not store is as a 4xx that it does not store.
func TestRefusalInABodyMayChange(t *testing.T) {
	t.Parallel()
	d := flat{answer: Answer{1, 200}, proof: Proof{Refused: true}, op: Op{KeyFacts: KeyFacts{Protected: true}}}.drive()
	if !d.mayChange() {
		t.Error("the refusal is given although its record is not durable")
	}
}

// TestRefusalInABodyIsNotAskedForAgain: nor is one that was recorded without its body.
func TestRefusalInABodyIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	rec := persist.Record{State: persist.StateConfirmed, Effect: persist.EffectRefused, Answer: &persist.Answer{Status: 200, Stored: true, BodyDropped: true}}
	op := OpOf(&rec, 0)
	if got := (Call{Request: Same}).Open(&op); op.Standing != Refused || got != SaysGone {
		t.Errorf("standing %d, opening %d; want a refusal whose answer is gone", op.Standing, got)
	}
}
