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
		"promised": {Drive{write: LeaveOpen, proof: expired(), op: Op{SendBefore: late}}, Op{Enqueued: true, SendBefore: later}, LeaveUnsent, ""},
		"promised again": {
			Drive{write: LeaveOpen, proof: expired(), op: Op{Enqueued: true, SendBefore: late}}, Op{Enqueued: true, SendBefore: later}, LeaveUnsent, "",
		},
		"as it was":            {Drive{write: LeaveOpen, proof: expired(), op: Op{Enqueued: true, SendBefore: late}}, Op{Enqueued: true, SendBefore: late}, LeaveOpen, persist.HoldExpired},
		"not promised":         {Drive{write: LeaveOpen, proof: expired(), op: Op{SendBefore: late}}, Op{SendBefore: later}, LeaveOpen, persist.HoldExpired},
		"in doubt":             {Drive{write: LeaveOpen, proof: expired(), history: inDoubt()}, Op{Enqueued: true, SendBefore: later}, LeaveOpen, persist.HoldExpired},
		"held for a reason":    {Drive{write: LeaveOpen, proof: Proof{Hold: persist.HoldUnclear}}, Op{Enqueued: true, SendBefore: later}, LeaveOpen, persist.HoldUnclear},
		"about to end":         {Drive{write: EndConfirmed, proof: Proof{Kind: ProvesEnd}}, Op{Enqueued: true, SendBefore: later}, EndConfirmed, ""},
		"about to be gone":     {Drive{write: Forget}, Op{Enqueued: true, SendBefore: later}, LeaveUnsent, ""},
		"gone, not promised":   {Drive{write: Forget}, Op{}, Forget, ""},
		"about to be absent":   {Drive{write: EndAbsent}, Op{Enqueued: true, SendBefore: later}, LeaveUnsent, ""},
		"absent, not promised": {Drive{write: EndAbsent}, Op{}, EndAbsent, ""},
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
	if d := (Drive{step: Send, write: LeaveOpen, proof: expired()}); true {
		if d.Moved(Op{Enqueued: true, SendBefore: later}); d.write != LeaveOpen {
			t.Error("before the write, the write has changed")
		}
	}
}
