package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestWaitsToSend: before the second request of an attempt, which is the send, the limiter is waited for; before the first it was.
func TestWaitsToSend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drive Drive
		want  bool
	}{
		"after a token":             {flat{step: KeepToken}.drive(), true},
		"after a lookup":            {flat{step: Check, after: Send, looked: true}.drive(), true},
		"without a lookup":          {flat{step: Check, after: Send}.drive(), false},
		"before a lookup":           {flat{step: Check, after: AskFirst, looked: true}.drive(), false},
		"the send itself":           {flat{step: Send, after: Send, looked: true}.drive(), false},
		"before a token is fetched": {flat{step: CheckToken}.drive(), false},
	} {
		if got := c.drive.WaitsToSend(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestLeaves: a call whose limiter is slow leaves what it has not ended, and goes on unless that is held against it.
func TestLeaves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drive  Drive
		leaves bool
		left   bool // by the report, once it is written
	}{
		"open":                {flat{limited: true, step: Write, write: LeaveOpen}.drive(), true, true},
		"never sent":          {flat{limited: true, step: Write, write: LeaveUnsent}.drive(), true, true},
		"open, for a caller":  {flat{limited: true, step: Write, write: LeaveOpen, hold: persist.HoldCaller}.drive(), true, true},
		"open, held":          {flat{limited: true, step: Write, write: LeaveOpen, hold: persist.HoldExpired}.drive(), true, false},
		"in time":             {flat{step: Write, write: LeaveOpen}.drive(), false, false},
		"of a pass":           {flat{limited: true, step: Write, write: LeaveOpen, given: Given{Pass: true}}.drive(), false, false},
		"ended":               {flat{limited: true, step: Write, write: EndMismatched}.drive(), false, false},
		"not at the write":    {flat{limited: true, step: Wait, write: LeaveOpen}.drive(), false, false},
		"of a pass, unsent":   {flat{limited: true, step: Write, write: LeaveUnsent, given: Given{Pass: true}}.drive(), false, false},
		"in time, never sent": {flat{step: Write, write: LeaveUnsent}.drive(), false, false},
	} {
		d := c.drive
		if got := d.Leaves(); got != c.leaves {
			t.Errorf("%s: leaves %t, want %t", name, got, c.leaves)
		}
		if d.step != Write {
			continue
		}
		if d.Written(true, noon); d.Report().Left != c.left {
			t.Errorf("%s: left %t, want %t", name, d.Report().Left, c.left)
		}
	}
}

// TestGivenBack: what is given back before a send is as before; what was begun for it has an end, and what was promised is not held.
func TestGivenBack(t *testing.T) {
	t.Parallel()
	end := noon.Add(time.Hour)
	now := Op{Sending: Sending{MaybeSent: true, FirstSent: noon}}
	held := Op{Phase: Phase{State: persist.StateHeld, Hold: persist.HoldCaller}, Sending: Sending{MaybeSent: true, FirstSent: noon.Add(-1)}}
	promised, bounded := now, now
	promised.Enqueued, bounded.SendBefore = true, noon.Add(time.Minute)
	for name, c := range map[string]struct {
		now, before, want Op
	}{
		"begun by the call":    {now, Op{}, Op{Sending: Sending{SendBefore: end}}},
		"with an end already":  {bounded, Op{}, Op{Sending: Sending{SendBefore: noon.Add(time.Minute)}}},
		"sent before":          {now, Op{Sending: Sending{MaybeSent: true, FirstSent: noon.Add(-2)}}, Op{Sending: Sending{MaybeSent: true, FirstSent: noon.Add(-2)}}},
		"held before":          {now, held, held},
		"promised meanwhile":   {promised, held, Op{Sending: Sending{Enqueued: true, MaybeSent: true, FirstSent: noon.Add(-1)}}},
		"promised, never sent": {promised, Op{}, Op{Sending: Sending{Enqueued: true, SendBefore: end}}},
	} {
		if got := c.now.GivenBack(c.before, end); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestGaveBackAfter: only a write that failed for certain leaves the operation with its call; after an unknown outcome nothing is sent.
func TestGaveBackAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		written, uncertain bool
		want               GaveBack
	}{
		"written":   {true, false, IsBack},
		"uncertain": {false, true, BackUnclear},
		"failed":    {false, false, NotBack},
	} {
		if got := GaveBackAfter(c.written, c.uncertain); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestWithdrawn: only a refusal is told as one, also by a call that has left its operation.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	for kind := range ProvesExpiry + 1 {
		want := IsNotSent
		if kind == ProvesRefusal {
			want = IsRefused
		}
		if d := (flat{proof: Proof{Kind: kind}}.drive()); d.Withdrawn() != want {
			t.Errorf("the proof %d: %d, want %d", kind, d.Withdrawn(), want)
		}
	}
}

// TestLeftBound: what was never sent and has no end for its first send gets one where its call may go on with it, and nowhere else.
func TestLeftBound(t *testing.T) {
	t.Parallel()
	latest, own := noon.Add(time.Hour), noon.Add(time.Minute)
	window := Op{Sending: Sending{Window: time.Hour, Pauses: UsualPauses, FirstSent: noon}}
	bounded, sent := window, window
	bounded.SendBefore, sent.MaybeSent = own, true
	for name, c := range map[string]struct {
		op      Op
		write   Writing
		limited bool
		want    time.Time
	}{
		"never sent":               {window, LeaveOpen, true, latest},
		"the mark is taken back":   {sent, LeaveUnsent, true, latest},
		"it has an end":            {bounded, LeaveUnsent, true, own},
		"it may have been sent":    {sent, LeaveOpen, true, time.Time{}},
		"no call goes on with it":  {window, LeaveOpen, false, time.Time{}},
		"nor with one with an end": {bounded, LeaveOpen, false, own},
	} {
		d := flat{op: c.op, step: Write, write: c.write, limited: c.limited}.drive()
		d.history.Doubt()
		for _, shown := range []bool{false, true} { // held or not
			if got := d.Change(Meanwhile{Shown: shown, LatestFirst: latest}, noon).SendBefore; !got.Equal(c.want) {
				t.Errorf("%s, shown %t: %v, want %v", name, shown, got, c.want)
			}
		}
	}
}

// TestMayRetake: a pass takes again what is pending and due, and nobody has.
func TestMayRetake(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		op     Op
		leased bool
		want   bool
	}{
		"due":       {Op{Sending: Sending{NextAttempt: now}}, false, true},
		"due later": {Op{Sending: Sending{NextAttempt: now.Add(1)}}, false, false},
		"leased":    {Op{}, true, false},
		"held":      {Op{Phase: Phase{State: persist.StateHeld}}, false, false},
		"ended":     {Op{Phase: Phase{State: persist.StateConfirmed}}, false, false},
	} {
		if got := MayRetake(&c.op, c.leased, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
