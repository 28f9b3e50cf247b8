package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestPromisedMeanwhile: an Enqueue beside a drive that is about to end it. What was never sent, and was too late for that, is pending again; what was or
// may have been sent is held all the same, and so is what was promised before.
func TestPromisedMeanwhile(t *testing.T) {
	t.Parallel()
	late, later := noon.Add(-time.Hour), noon.Add(time.Hour)
	for name, c := range map[string]struct {
		drive Drive
		now   Op
		write Writing
		hold  persist.HoldReason
	}{
		"promised": {flat{write: LeaveOpen, proof: expired(), op: Op{Sending: Sending{SendBefore: late}}}.drive(), Op{Sending: Sending{Enqueued: true, SendBefore: later}}, LeaveUnsent, ""},
		"promised again": {
			flat{write: LeaveOpen, proof: expired(), op: Op{Sending: Sending{Enqueued: true, SendBefore: late}}}.drive(), Op{Sending: Sending{Enqueued: true, SendBefore: later}}, LeaveUnsent, "",
		},
		"as it was":            {flat{write: LeaveOpen, proof: expired(), op: Op{Sending: Sending{Enqueued: true, SendBefore: late}}}.drive(), Op{Sending: Sending{Enqueued: true, SendBefore: late}}, LeaveOpen, persist.HoldExpired},
		"not promised":         {flat{write: LeaveOpen, proof: expired(), op: Op{Sending: Sending{SendBefore: late}}}.drive(), Op{Sending: Sending{SendBefore: later}}, LeaveOpen, persist.HoldExpired},
		"in doubt":             {flat{write: LeaveOpen, proof: expired(), history: inDoubt()}.drive(), Op{Sending: Sending{Enqueued: true, SendBefore: later}}, LeaveOpen, persist.HoldExpired},
		"held for a reason":    {flat{write: LeaveOpen, proof: Proof{Hold: persist.HoldUnclear}}.drive(), Op{Sending: Sending{Enqueued: true, SendBefore: later}}, LeaveOpen, persist.HoldUnclear},
		"about to end":         {flat{write: EndConfirmed, proof: Proof{Kind: ProvesEnd}}.drive(), Op{Sending: Sending{Enqueued: true, SendBefore: later}}, EndConfirmed, ""},
		"about to be gone":     {flat{write: Forget}.drive(), Op{Sending: Sending{Enqueued: true, SendBefore: later}}, LeaveUnsent, ""},
		"gone, not promised":   {flat{write: Forget}.drive(), Op{}, Forget, ""},
		"about to be absent":   {flat{write: EndAbsent}.drive(), Op{Sending: Sending{Enqueued: true, SendBefore: later}}, LeaveUnsent, ""},
		"absent, not promised": {flat{write: EndAbsent}.drive(), Op{}, EndAbsent, ""},
	} {
		d := c.drive
		d.step, d.op.Window, d.op.Pauses = Write, time.Hour, UsualPauses
		c.now.Window, c.now.Pauses = time.Hour, UsualPauses
		if d.Moved(c.now); d.write != c.write {
			t.Errorf("%s: write %d, want %d", name, d.write, c.write)
		}
		if d.write != LeaveOpen && d.write != LeaveUnsent {
			continue
		}
		if got := d.Change(Meanwhile{}, noon); got.Hold != c.hold {
			t.Errorf("%s: held for %q, want %q", name, got.Hold, c.hold)
		}
	}
	if d := (flat{step: Send, write: LeaveOpen, proof: expired()}.drive()); true {
		if d.Moved(Op{Sending: Sending{Enqueued: true, SendBefore: later}}); d.write != LeaveOpen {
			t.Error("before the write, the write has changed")
		}
	}
}
