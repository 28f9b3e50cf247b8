package journal

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestRestoredKeepsALostSender: a restore ends the lease of a process that is gone, and what that process may still send stays known: nobody says "absent" before.
func TestRestoredKeepsALostSender(t *testing.T) {
	t.Parallel()
	now := time.Unix(9000, 0)
	rec := persist.Record{State: persist.StatePending, MaybeSent: true, FirstSent: now, LeaseOwner: "lost", LeaseUntil: now, SendUntil: now.Add(time.Minute), WireKey: "k"}
	if !holdRestored(&rec, now) || rec.LeaseOwner != "" || !rec.LeaseUntil.IsZero() || !rec.DesertedUntil.Equal(now.Add(time.Minute)) {
		t.Errorf("lease of %q until %v, deserted until %v; want no lease, and the end of the send", rec.LeaseOwner, rec.LeaseUntil, rec.DesertedUntil)
	}
}
