package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

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
		"does not say":         {Op{MaybeSent: true}, usual},
		"says":                 {Op{MaybeSent: true, SendUntil: late}, late},
		"says, and is over":    {Op{MaybeSent: true, SendUntil: now.Add(-1)}, now},
		"was sent, and is not": {Op{SendUntil: late}, late},
	} {
		if got := c.op.SentBy(now, usual); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestWaits: the operation of a Rekey waits until that lets it go.
func TestWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op   Op
		want bool
	}{
		{Op{Hold: persist.HoldRekey}, true}, {Op{Hold: persist.HoldRekey, Enqueued: true}, false}, {Op{}, false}, {Op{Enqueued: true}, false},
		{Op{Hold: persist.HoldUnclear}, false},
	} {
		if got := c.op.Waits(); got != c.want {
			t.Errorf("%+v waits: %t", c.op, got)
		}
	}
}

// TestGlanceOf: a record has ended, or has not.
func TestGlanceOf(t *testing.T) {
	t.Parallel()
	for state, want := range map[persist.State]Glance{
		persist.StatePending: SeesOpen, persist.StateHeld: SeesOpen, persist.StateConfirmed: SeesEnded, persist.StateSettled: SeesEnded,
		persist.StateMismatched: SeesEnded, persist.StateAbandoned: SeesEnded,
	} {
		if got := GlanceOf(&persist.Record{State: state}); got != want {
			t.Errorf("%v: %d, want %d", state, got, want)
		}
	}
}

// TestUnmarkedHasNoWindow: an operation that is pending as never sent has no window, so that its pause is not cut by one.
func TestUnmarkedHasNoWindow(t *testing.T) {
	t.Parallel()
	first := time.Unix(1_000_000, 0)
	now := first.Add(24*time.Hour - 91*time.Second)
	op := Op{MaybeSent: true, FirstSent: first, Window: 24 * time.Hour, Pauses: UsualPauses}
	d := Drive{op: op, step: Write, write: LeaveUnsent, proof: Proof{Kind: ProvesRefusal}, attempts: 1, sends: 1, reached: true}
	if c := d.Change(Meanwhile{}, now); !c.Unmark || c.NextAttempt.Sub(now) != UsualPauses.First {
		t.Errorf("due after %v, unmarked %t; want %v", c.NextAttempt.Sub(now), c.Unmark, UsualPauses.First)
	}
}

// TestStandings: how a record or an answer stands.
func TestStandings(t *testing.T) {
	t.Parallel()
	for want, rec := range map[Standing]persist.Record{
		Open: {State: persist.StateHeld}, Abandoned: {State: persist.StateAbandoned}, Happened: {State: persist.StateSettled, Effect: persist.EffectHappened},
		Absent: {State: persist.StateSettled, Effect: persist.EffectAbsent},
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

// TestLacksCredentials: where others send with Authorize, a client without it does not.
func TestLacksCredentials(t *testing.T) {
	t.Parallel()
	needs := persist.Needs{Format: persist.Format}
	has := Has{Profile: true, OriginAllowed: true, OthersAuthorize: "https://api.test"}
	if got := Gate(needs, "https://api.test", has).Need; got != Authorize {
		t.Errorf("without Authorize: %d", got)
	}
	if has.Authorize = true; Gate(needs, "https://api.test", has).Need != Nothing {
		t.Error("with Authorize it may not act")
	}
}

// TestSeenLease: a digest of what was seen says whether a drive was under way, unless the operation had ended.
func TestSeenLease(t *testing.T) {
	t.Parallel()
	open, leased := persist.Record{}, persist.Record{LeaseOwner: "w"}
	if Seen(&open) == Seen(&leased) {
		t.Error("a lease of an open operation is not in the digest")
	}
	open.State, leased.State = persist.StateConfirmed, persist.StateConfirmed
	if Seen(&open) != Seen(&leased) {
		t.Error("a lease of an operation that has ended is in the digest")
	}
	if why := Moved(&leased, &leased, End); why != "" {
		t.Errorf("an operation that has ended has moved: %s", why)
	}
	held := persist.Record{State: persist.StateHeld, HoldReason: persist.HoldExpired}
	if why := Moved(&held, &persist.Record{}, End); why != "it was held (expired) when it was seen, and is pending" {
		t.Errorf("moved: %q", why)
	}
}

// TestFinalStatus: a person names as the API's answer only what ends an operation.
func TestFinalStatus(t *testing.T) {
	for status, want := range map[int]bool{199: false, 200: true, 299: true, 300: false, 302: false, 303: true, 304: false, 399: false, 400: true, 499: true, 500: false, 503: false} {
		if got := IsFinalStatus(status); got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
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

// TestMayAssign: an operation is assigned if nothing has it, nothing stands beside it, and it is as it was seen. Whoever hears of a change hears of that first.
func TestMayAssign(t *testing.T) {
	t.Parallel()
	for bits := range 16 {
		is := func(n int) bool { return bits>>n&1 == 1 }
		op, a := Op{Erased: is(1)}, Assigning{Moved: is(0), Leased: is(2), Beside: is(3)}
		want := MayAct
		for n, why := range [...]Refusal{HasMoved, IsErased, IsLeased, IsBeside} {
			if is(n) {
				want = why
				break
			}
		}
		if got := op.MayAssign(a); got != want {
			t.Errorf("%+v, erased %t: %d, want %d", a, op.Erased, got, want)
		}
	}
}
