package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// TestUnanswered: without an answer an effect is possible, unless nothing was sent.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unsent, fatal bool
		want          classify.Verdict
	}{
		{false, false, classify.Verdict{Kind: classify.KindUnknown, Again: true}},
		{false, true, classify.Verdict{Kind: classify.KindUnknown}},
		{true, false, classify.Verdict{Kind: classify.KindNotSent, Again: true}},
		{true, true, classify.Verdict{Kind: classify.KindNotSent}},
	} {
		if got := Unanswered(c.unsent, c.fatal); got != c.want {
			t.Errorf("unsent %t, fatal %t: %+v, want %+v", c.unsent, c.fatal, got, c.want)
		}
	}
}

// TestBegun: a new operation is marked before its first send, unless it waits for its token: then that send has an end.
func TestBegun(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	until, last := now.Add(time.Minute), now.Add(time.Hour)
	if got, want := (Op{}).Begun(now, until, last), (Op{Sending: Sending{MaybeSent: true, FirstSent: now, SendUntil: until}}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := (Op{KeyFacts: KeyFacts{ServerToken: true}}).Begun(now, until, last), (Op{KeyFacts: KeyFacts{ServerToken: true}, Sending: Sending{SendBefore: last}}); got != want {
		t.Errorf("with a token: %+v, want %+v", got, want)
	}
	client := Client{AttemptTimeout: time.Minute, ClockSkew: time.Minute}
	if got, want := client.LatestFirstSend(now, time.Hour), now.Add(58*time.Minute); !got.Equal(want) {
		t.Errorf("the latest first send is %v, want %v", got, want)
	}
}

// TestLastSend: the window counts from the first send, or from the latest one possible.
func TestLastSend(t *testing.T) {
	t.Parallel()
	created := time.Unix(1000, 0)
	first, before := created.Add(time.Minute), created.Add(time.Hour)
	for name, c := range map[string]struct {
		op   Op
		want time.Time
	}{
		"sent":                 {Op{Sending: Sending{MaybeSent: true, FirstSent: first, SendBefore: before}}, first},
		"not yet":              {Op{Sending: Sending{SendBefore: before}}, before},
		"not yet, and no time": {Op{}, created},
	} {
		if c.op.Window = 24 * time.Hour; !c.op.LastSend(created).Equal(c.want.Add(c.op.Window)) {
			t.Errorf("%s: %v, want a day after %v", name, c.op.LastSend(created), c.want)
		}
	}
}

// TestTakesBackLeft: a call takes back what it has begun, and nobody has, will or may have sent.
func TestTakesBackLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op      Op
		created bool
		want    bool
	}{
		{Op{}, true, true}, {Op{}, false, false}, {Op{Sending: Sending{MaybeSent: true}}, true, false}, {Op{Sending: Sending{Enqueued: true}}, true, false},
	} {
		if got := c.op.TakesBackLeft(c.created); got != c.want {
			t.Errorf("%+v, created %t: %t, want %t", c.op, c.created, got, c.want)
		}
	}
}

// TestFlushesFirst: of the ends only an effect that happened may be told before it is durable.
func TestFlushesFirst(t *testing.T) {
	t.Parallel()
	for standing, want := range map[Standing]bool{Succeeded: false, Accepted: false, Happened: false, Refused: true, Absent: true, Abandoned: true, Ended: true} {
		if op := (Op{Phase: Phase{State: persist.StateSettled, Standing: standing}}); op.FlushesFirst() != want {
			t.Errorf("%v: %t, want %t", standing, !want, want)
		}
	}
	if op := (Op{Phase: Phase{State: persist.StatePending, Standing: Open}}); op.FlushesFirst() {
		t.Error("an open operation is flushed")
	}
}

// TestAsksAgain: only in the window, and only by a client that may act on the operation.
func TestAsksAgain(t *testing.T) {
	t.Parallel()
	first := time.Unix(1000, 0)
	client, op := Client{AttemptTimeout: time.Minute}, Op{Sending: Sending{FirstSent: first, Window: time.Hour}}
	for _, c := range []struct {
		age  time.Duration
		able bool
		want bool
	}{
		{0, true, true}, {59*time.Minute - 1, true, true}, {59 * time.Minute, true, false}, {-time.Second, true, false}, {0, false, false},
	} {
		if got := client.AsksAgain(&op, first.Add(c.age), c.able); got != c.want {
			t.Errorf("at %v, able %t: %t, want %t", c.age, c.able, got, c.want)
		}
	}
}
