package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

func TestOpOf(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	success := &persist.Answer{Status: 201, Stored: true, BodyDropped: true}
	own := persist.Pauses{Attempts: 1, First: time.Second, Most: time.Minute}
	for name, c := range map[string]struct {
		rec    persist.Record
		window time.Duration
		want   Op
	}{
		"no profile":        {persist.Record{Window: day}, 0, Op{Sending: Sending{Window: day}}},
		"shorter profile":   {persist.Record{Window: day}, time.Hour, Op{Sending: Sending{Window: time.Hour}}},
		"longer profile":    {persist.Record{Window: time.Hour}, day, Op{Sending: Sending{Window: time.Hour}}},
		"token":             {persist.Record{ServerToken: true, Token: "t"}, 0, Op{KeyFacts: KeyFacts{ServerToken: true, Token: true}}},
		"pauses of its own": {persist.Record{Pauses: own}, 0, Op{Sending: Sending{Pauses: own}}},
		"answer without its body": {
			persist.Record{State: persist.StateConfirmed, Answer: success}, 0,
			Op{Phase: Phase{State: persist.StateConfirmed, Standing: Succeeded}, Recorded: Recorded{Answered: true, Status: 201, Dropped: true, AskAgain: true}},
		},
		"the same, without its request": { // by a clock that was ahead
			persist.Record{State: persist.StateConfirmed, Answer: success, RequestDropped: true}, 0,
			Op{Phase: Phase{State: persist.StateConfirmed, Standing: Succeeded}, Recorded: Recorded{Answered: true, Status: 201, Dropped: true}},
		},
	} {
		want := c.want
		if want.Standing == Unclear {
			want.Standing = Open
		}
		if want.Pauses == (persist.Pauses{}) {
			want.Pauses = UsualPauses
		}
		if got := OpOf(&c.rec, c.window); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// A token is needed where there is none, and where the one that was there was never sent. What may have been sent keeps its own.
func TestWantsToken(t *testing.T) {
	t.Parallel()
	for op, want := range map[Op]bool{
		{}:                                      false,
		{KeyFacts: KeyFacts{ServerToken: true}}: true,
		{KeyFacts: KeyFacts{ServerToken: true}, Sending: Sending{Sends: 1}}:              true,
		{KeyFacts: KeyFacts{ServerToken: true, Token: true}}:                             true,
		{KeyFacts: KeyFacts{ServerToken: true}, Sending: Sending{MaybeSent: true}}:       false,
		{KeyFacts: KeyFacts{ServerToken: true, Token: true}, Sending: Sending{Sends: 1}}: false,
	} {
		if got := WantsToken(&op); got != want {
			t.Errorf("%+v: %t", op, got)
		}
	}
}

func TestTooOld(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for before, want := range map[time.Time]bool{{}: false, now: false, now.Add(-1): true} {
		if op := (Op{Sending: Sending{SendBefore: before}}); op.TooOld(now) != want {
			t.Errorf("before %v: not %t", before, want)
		}
	}
}

// A pause doubles with each drive that spent its attempts, and uses the last hours of the time for sends.
func TestPause(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	for name, c := range map[string]struct {
		earlier, attempts int
		left              time.Duration // zero: no end
		pauses            persist.Pauses
		want              time.Duration
	}{
		"nothing attempted":      {0, 0, 0, UsualPauses, 30 * time.Second},
		"the first drive":        {0, 6, 0, UsualPauses, 30 * time.Second},
		"the second drive":       {6, 1, 0, UsualPauses, time.Minute},
		"the third drive":        {6, 7, 0, UsualPauses, 2 * time.Minute},
		"the most":               {6000, 3, 0, UsualPauses, 15 * time.Minute},
		"a minute is left":       {6000, 3, time.Minute, UsualPauses, 30 * time.Second},
		"an hour is left":        {6, 1, time.Hour, UsualPauses, time.Minute},
		"next to nothing left":   {6, 1, time.Nanosecond, UsualPauses, 500 * time.Millisecond},
		"it is over":             {6, 1, -time.Hour, UsualPauses, time.Minute},
		"short pauses, the last": {9, 1, time.Nanosecond, persist.Pauses{Attempts: 1, First: 100 * time.Millisecond, Most: time.Second}, 100 * time.Millisecond},
	} {
		var until time.Time
		if c.left != 0 {
			until = now.Add(c.left)
		}
		op := Op{Sending: Sending{Pauses: c.pauses, Attempts: c.earlier}}
		if got := op.pause(c.attempts, now, until); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The last moment for a send is that of the window once it may have been sent, and that of the first send before.
func TestSendableUntil(t *testing.T) {
	t.Parallel()
	op := Op{Sending: Sending{FirstSent: time.Unix(0, 0), Window: time.Hour, SendBefore: time.Unix(7, 0)}}
	if got := op.sendableUntil(false); got != op.SendBefore {
		t.Errorf("never sent: %v", got)
	}
	if got, want := op.sendableUntil(true), time.Unix(3600-90, 0); !got.Equal(want) {
		t.Errorf("sent: %v, want %v", got, want)
	}
}

// TestDueAgain: an operation given back is not due sooner than before, and not later than the end of the time for sends, while that lies ahead.
func TestDueAgain(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for name, c := range map[string]struct {
		sendBefore, next, again, want int64
		marked                        bool // then the end is at 3510
	}{
		"after a pause":               {5000, 0, 1030, 1030, false},
		"not sooner than before":      {5000, 1100, 1030, 1100, false},
		"at the end":                  {1020, 0, 1030, 1020, false},
		"after the end, with a pause": {900, 0, 1030, 1030, false},
		"at the end of the window":    {0, 0, 3600, 3510, true},
	} {
		op := Op{Sending: Sending{FirstSent: at(0), Window: time.Hour, MaybeSent: c.marked, NextAttempt: at(c.next), SendBefore: at(c.sendBefore)}}
		if got := op.DueAgain(at(c.again), at(1000)); !got.Equal(at(c.want)) {
			t.Errorf("%s: due at %v; want %v", name, got.Unix(), c.want)
		}
	}
	free := Op{Sending: Sending{NextAttempt: at(0)}}
	if got := free.DueAgain(at(1030), at(1000)); !got.Equal(at(1030)) {
		t.Errorf("without an end: %v", got)
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

// TestNamesNext: a new try has a key only if callers know the key before it.
func TestNamesNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op   Op
		want bool
	}{
		"a caller's key": {Op{}, true}, "made for one call": {Op{KeyFacts: KeyFacts{Generated: true}}, false}, "made of the request": {Op{KeyFacts: KeyFacts{Generated: true, Business: true}}, true},
		"the server's": {Op{KeyFacts: KeyFacts{ServerToken: true}}, false},
	} {
		if got := c.op.NamesNext(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestSentBy: the record says until when a send may be on its way; one that does not say is taken for a usual one.
func TestSentBy(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	usual, late := now.Add(time.Minute), now.Add(time.Hour)
	for name, c := range map[string]struct {
		op   Op
		want time.Time
	}{
		"never sent":           {Op{}, now},
		"does not say":         {Op{Sending: Sending{MaybeSent: true}}, usual},
		"says":                 {Op{Sending: Sending{MaybeSent: true, SendUntil: late}}, late},
		"says, and is over":    {Op{Sending: Sending{MaybeSent: true, SendUntil: now.Add(-1)}}, now},
		"was sent, and is not": {Op{Sending: Sending{SendUntil: late}}, late},
	} {
		if got := c.op.SentBy(now, usual); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestBoundaries: the moments at which a rule begins to hold.
func TestBoundaries(t *testing.T) {
	t.Parallel()
	client, first := Client{AttemptTimeout: 30 * time.Second, ClockSkew: time.Minute}, time.Unix(1_000_000, 0)
	for age, want := range map[time.Duration]Clock{-time.Minute - 1: OutOfWindow, -time.Minute: BeforeFirst, -1: BeforeFirst, 0: InWindow} {
		if got := client.ClockAt(first, first.Add(age), 24*time.Hour); got != want {
			t.Errorf("at an age of %v: %d, want %d", age, got, want)
		}
	}
	if rec := (persist.Record{State: persist.StateConfirmed, Answer: &persist.Answer{Status: 201}}); OpOf(&rec, 0).AskAgain {
		t.Error("an answer that the server does not give again is asked for again")
	}
	if rec := (persist.Record{State: persist.StateConfirmed, Answer: &persist.Answer{Status: 201, Stored: true}}); !OpOf(&rec, 0).AskAgain {
		t.Error("an answer that the server gives again is not asked for again")
	}
}
