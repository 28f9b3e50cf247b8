package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// TestMayLeave: the last look at the clock, once Limiter, turn and Authorize have let a send go.
func TestMayLeave(t *testing.T) {
	t.Parallel()
	const skew, attempt = time.Minute, 30 * time.Second
	for name, c := range map[string]struct {
		before  time.Duration // SendBefore, after the first send; zero: none
		now     time.Duration
		doubted bool
		later   bool // a redirect, of which something was sent
		want    Stop
	}{
		"in time":              {time.Hour, time.Hour, false, false, GoesOn},
		"too late":             {time.Hour, time.Hour + 1, false, false, TooOld},
		"too late, in doubt":   {time.Hour, time.Hour + 1, true, false, GoesOn},
		"too late, a redirect": {time.Hour, time.Hour + 1, false, true, GoesOn},
		"no bound":             {0, time.Hour, false, false, GoesOn},
		"in the window":        {0, 24*time.Hour - attempt - skew - 1, true, false, GoesOn},
		"out of the window":    {0, 24*time.Hour - attempt - skew, true, false, WindowNear},
		"before the first":     {0, -1, true, false, WindowNear},
	} {
		op := Op{Sending: Sending{MaybeSent: true, FirstSent: noon, Window: 24 * time.Hour}}
		if c.before != 0 {
			op.SendBefore = noon.Add(c.before)
		}
		d := NewDrive(op, Client{AttemptTimeout: attempt, ClockSkew: skew}, Given{Doubted: c.doubted})
		if got := d.MayLeave(noon.Add(c.now), !c.later); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestKeepsAnswer: an answer that may still be returned is not closed while the drive waits.
func TestKeepsAnswer(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]bool{
		ProvesNothing: false, ProvesUnsent: false, ProvesRefusal: true, ProvesInFlight: false, ProvesEnd: true, ProvesMismatch: false, ProvesExpiry: false,
	} {
		if d := (flat{proof: Proof{Kind: kind}}.drive()); d.KeepsAnswer() != want {
			t.Errorf("kind %d: not %t", kind, want)
		}
	}
}

// TestReached: a request that left this process reached a server, also one for a token; one that did not leave reached nobody.
func TestReached(t *testing.T) {
	t.Parallel()
	for _, unsent := range []bool{true, false} {
		d := NewDrive(Op{KeyFacts: KeyFacts{ServerToken: true}, Sending: Sending{Window: time.Hour}}, Client{}, Given{})
		d.Checked(true, noon)
		d.TokenFetched(false, false, Sent{Unsent: unsent})
		if d.Reached() == unsent || d.Sends() != 0 || d.Attempts() != 1 {
			t.Errorf("unsent %t: reached %t, %d sends, %d attempts", unsent, d.Reached(), d.Sends(), d.Attempts())
		}
	}
}

// TestUnread: an answer that settles nothing under other facts stays beside the record; so does the operation's own where a lookup was read by
// these.
func TestUnread(t *testing.T) {
	t.Parallel()
	drive := func() Drive {
		d := NewDrive(Op{KeyFacts: KeyFacts{Protected: true}, Sending: Sending{MaybeSent: true, FirstSent: noon, Window: time.Hour}}, Client{}, Given{OtherFacts: true})
		d.Checked(true, noon)
		return d
	}
	declined := drive()
	declined.Sent(classify.Verdict{Kind: classify.KindFinal}, Sent{Answer: Answer{1, 402}, Sends: 1})
	if !declined.Unread() || declined.Answer().ID != 1 || declined.Proof().Hold != persist.HoldUnread {
		t.Errorf("declined: %+v", declined)
	}
	done := drive()
	done.Sent(classify.Verdict{Kind: classify.KindFinal, AlreadyDone: true}, Sent{Answer: Answer{1, 409}, Sends: 1})
	done.LookedUp(classify.Verdict{Kind: classify.KindFinal, AlreadyDone: true}, Sent{Answer: Answer{2, 200}, Sends: 1})
	if !done.Unread() || done.Answer().ID != 1 || done.Sends() != 2 {
		t.Errorf("already done: %+v", done)
	}
	taken := drive()
	taken.Sent(classify.Verdict{Kind: classify.KindFinal}, Sent{Answer: Answer{1, 201}, Sends: 1})
	if taken.Unread() || taken.Proof().Kind != ProvesEnd {
		t.Errorf("taken: %+v", taken)
	}
}

// TestDrawnGivenUp: a limit is told before the call was given up; both stop the drive.
func TestDrawnGivenUp(t *testing.T) {
	t.Parallel()
	client := Client{MaxAttempts: 3, MaxElapsed: time.Hour, MaxRetryAfter: time.Hour, MaxDelay: time.Hour}
	for deadline, want := range map[time.Duration]Stop{time.Second: DeadlineNear, time.Minute: GivenUp} {
		d := NewDrive(Op{KeyFacts: KeyFacts{Protected: true}, Sending: Sending{MaybeSent: true, FirstSent: noon, Window: 24 * time.Hour, Pauses: UsualPauses}}, client, Given{})
		d.Checked(true, noon)
		d.Sent(classify.Verdict{Again: true}, Sent{Sends: 1})
		d.Drawn(Drawn{Scheduled: 2 * time.Second, Deadline: noon.Add(deadline), GivenUp: true}, noon)
		if d.Stop() != want || d.Step() != Write {
			t.Errorf("deadline in %v: stop %d, want %d", deadline, d.Stop(), want)
		}
	}
}

// TestErrorsInARow: equal errors that the API may keep count while nothing else comes between them.
func TestErrorsInARow(t *testing.T) {
	t.Parallel()
	d := NewDrive(Op{KeyFacts: KeyFacts{Protected: true}, Sending: Sending{MaybeSent: true, FirstSent: noon, Window: time.Hour}}, Client{}, Given{})
	for i, c := range []struct {
		said uint64
		want int
	}{{0, 0}, {7, 1}, {7, 2}, {8, 1}, {8, 2}, {0, 0}, {8, 1}} {
		d.Sent(classify.Verdict{Again: true}, Sent{Sends: 1, Error: c.said})
		if d.Errors() != c.want {
			t.Errorf("answer %d: %d in a row, want %d", i, d.Errors(), c.want)
		}
	}
}

// TestTimedOut: to a caller of plain HTTP a 408 after nothing but 408s is shown; after anything else that may have had an effect it is not.
func TestTimedOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statuses []int
		want     bool
	}{
		"once":               {[]int{408}, true},
		"twice":              {[]int{408, 408}, true},
		"three times":        {[]int{408, 408, 408}, true},
		"after a 500":        {[]int{500, 408}, false},
		"around a 500":       {[]int{408, 500, 408}, false},
		"twice, after a 500": {[]int{500, 408, 408}, false},
		"a 404 after it":     {[]int{408, 404}, false},
	} {
		d := NewDrive(Op{KeyFacts: KeyFacts{Protected: true}, Sending: Sending{MaybeSent: true, FirstSent: noon, Window: time.Hour}}, Client{}, Given{})
		for i, status := range c.statuses {
			d.Sent(classify.Verdict{Again: true}, Sent{Sends: 1, Answer: Answer{i + 1, status}})
		}
		if d.mayShow() != c.want {
			t.Errorf("%s: shown %t, want %t", name, !c.want, c.want)
		}
	}
}

// TestExtendsSendUntil: a send that may outlast the stored time needs a later one first; a question for a kept answer does not.
func TestExtendsSendUntil(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		again bool
		until time.Time
		want  bool
	}{
		"ends before":     {false, noon.Add(-1), false},
		"ends just then":  {false, noon, false},
		"may outlast it":  {false, noon.Add(1), true},
		"asked for again": {true, noon.Add(1), false},
	} {
		d := flat{given: Given{AskedAgain: c.again}}.drive()
		if got := d.ExtendsSendUntil(noon, c.until); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestAsksFirst: a lookup comes before a send only where something may have happened, and not before a question for a kept answer.
func TestAsksFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given   Given
		inDoubt bool
		want    bool
	}{
		"no doubt":                {Given{AskFirst: true}, false, false},
		"of this drive":           {Given{AskFirst: true}, true, true},
		"of an earlier one":       {Given{AskFirst: true, Doubted: true}, false, true},
		"the policy does not ask": {Given{Doubted: true}, true, false},
		"asked for its answer":    {Given{AskFirst: true, AskedAgain: true, Doubted: true}, true, false},
	} {
		if got := c.given.AsksFirst(c.inDoubt); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestLookedUpOfAnotherRequest: the resource named by an already-done answer is another request's. The operation does not end, and the answer of the attempt
// counts, not that of the resource. Under other facts of the profile the resource says nothing: the attempt's own verdict is judged.
func TestLookedUpOfAnotherRequest(t *testing.T) {
	t.Parallel()
	another := classify.Verdict{Kind: classify.KindUnknown, Hold: true, Reason: classify.ReasonDuplicate}
	for otherFacts, hold := range map[bool]persist.HoldReason{false: persist.HoldDuplicate, true: persist.HoldUnread} {
		d := NewDrive(Op{Phase: Phase{Standing: Open}, KeyFacts: KeyFacts{Protected: true}}, Client{MaxAttempts: 1}, Given{Created: true, OtherFacts: otherFacts})
		d.Sent(classify.Verdict{Kind: classify.KindFinal, AlreadyDone: true}, Sent{Answer: Answer{1, 200}, Sends: 1})
		if d.Step() != LookUp {
			t.Fatalf("step %v", d.Step())
		}
		d.LookedUp(another, Sent{Answer: Answer{2, 200}, Sends: 1})
		if d.Proof().Kind == ProvesEnd || d.Proof().Hold != hold || d.Answer().ID != 1 {
			t.Errorf("other facts %t: the proof is %+v, by answer %d", otherFacts, d.Proof(), d.Answer().ID)
		}
	}
}

// TestCheckedFarBack: a clock far behind the latest send counts as the end of the window: the operation is held, and not left to others.
func TestCheckedFarBack(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	op := Op{Phase: Phase{State: persist.StatePending, Standing: Open}, KeyFacts: KeyFacts{Protected: true}, Sending: Sending{MaybeSent: true, FirstSent: first, Tried: first.Add(20 * time.Hour), Window: 24 * time.Hour, Pauses: UsualPauses}}
	client := Client{AttemptTimeout: time.Second, ClockSkew: time.Minute, MaxAttempts: 3}
	d := NewDrive(op, client, Given{Pass: true}.After(&op.Sending))
	for d.Step() == AskFirst {
		d.Asked(classify.FindingUnclear, Sent{Unsent: true}, false)
	}
	if d.Checked(true, first.Add(2*time.Hour)); d.Step() == Send || d.Proof().Hold != persist.HoldExpired {
		t.Errorf("step %v, hold %q, want it held as expired", d.Step(), d.Proof().Hold)
	}
}

// TestOldFound: a drive that finds so ends before its next attempt, and the operation is held for a person.
func TestOldFound(t *testing.T) {
	t.Parallel()
	d := NewDrive(Op{Phase: Phase{Standing: Open}, KeyFacts: KeyFacts{Protected: true}, Replaces: true}, Client{}, Given{Pass: true})
	d.OldFound()
	if d.Step() == Send || d.Stop() != OldHappened || d.Proof().Hold != persist.HoldPredecessor {
		t.Errorf("step %v, stop %v, hold %q", d.Step(), d.Stop(), d.Proof().Hold)
	}
}

// TestTokenLater: an answer without a token is asked for again if the server may have one later.
func TestTokenLater(t *testing.T) {
	for status, want := range map[int]bool{200: false, 400: false, 401: false, 404: false, 408: true, 409: true, 425: true, 429: true, 499: false, 500: true, 503: true} {
		if got := IsTokenLater(status); got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
	}
}
