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
		"after a token":             {Drive{step: KeepToken}, true},
		"after a lookup":            {Drive{step: Check, after: Send, looked: true}, true},
		"without a lookup":          {Drive{step: Check, after: Send}, false},
		"before a lookup":           {Drive{step: Check, after: AskFirst, looked: true}, false},
		"the send itself":           {Drive{step: Send, after: Send, looked: true}, false},
		"before a token is fetched": {Drive{step: CheckToken}, false},
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
		"open":                {Drive{limited: true, step: Write, write: LeaveOpen}, true, true},
		"never sent":          {Drive{limited: true, step: Write, write: LeaveUnsent}, true, true},
		"open, for a caller":  {Drive{limited: true, step: Write, write: LeaveOpen, hold: persist.HoldCaller}, true, true},
		"open, held":          {Drive{limited: true, step: Write, write: LeaveOpen, hold: persist.HoldExpired}, true, false},
		"in time":             {Drive{step: Write, write: LeaveOpen}, false, false},
		"of a pass":           {Drive{limited: true, step: Write, write: LeaveOpen, given: Given{Pass: true}}, false, false},
		"ended":               {Drive{limited: true, step: Write, write: EndMismatched}, false, false},
		"not at the write":    {Drive{limited: true, step: Wait, write: LeaveOpen}, false, false},
		"of a pass, unsent":   {Drive{limited: true, step: Write, write: LeaveUnsent, given: Given{Pass: true}}, false, false},
		"in time, never sent": {Drive{step: Write, write: LeaveUnsent}, false, false},
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
	now := Op{MaybeSent: true, FirstSent: noon}
	held := Op{State: persist.StateHeld, Hold: persist.HoldCaller, MaybeSent: true, FirstSent: noon.Add(-1)}
	promised, bounded := now, now
	promised.Enqueued, bounded.SendBefore = true, noon.Add(time.Minute)
	for name, c := range map[string]struct {
		now, before, want Op
	}{
		"begun by the call":    {now, Op{}, Op{SendBefore: end}},
		"with an end already":  {bounded, Op{}, Op{SendBefore: noon.Add(time.Minute)}},
		"sent before":          {now, Op{MaybeSent: true, FirstSent: noon.Add(-2)}, Op{MaybeSent: true, FirstSent: noon.Add(-2)}},
		"held before":          {now, held, held},
		"promised meanwhile":   {promised, held, Op{Enqueued: true, MaybeSent: true, FirstSent: noon.Add(-1)}},
		"promised, never sent": {promised, Op{}, Op{Enqueued: true, SendBefore: end}},
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
		if d := (Drive{proof: Proof{Kind: kind}}); d.Withdrawn() != want {
			t.Errorf("the proof %d: %d, want %d", kind, d.Withdrawn(), want)
		}
	}
}

// TestLeftBound: what was never sent and has no end for its first send gets one where its call may go on with it, and nowhere else.
func TestLeftBound(t *testing.T) {
	t.Parallel()
	latest, own := noon.Add(time.Hour), noon.Add(time.Minute)
	window := Op{Window: time.Hour, Pauses: UsualPauses, FirstSent: noon}
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
		d := Drive{op: c.op, step: Write, write: c.write, limited: c.limited}
		d.history.Doubt()
		for _, shown := range []bool{false, true} { // held or not
			if got := d.Change(Meanwhile{Shown: shown, LatestFirst: latest}, noon).SendBefore; !got.Equal(c.want) {
				t.Errorf("%s, shown %t: %v, want %v", name, shown, got, c.want)
			}
		}
	}
}
