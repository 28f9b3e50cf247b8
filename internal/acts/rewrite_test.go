package acts_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/persist"
)

// TestMayRewrite: a stale write is repeated over an Enqueue's mark, an event's evidence and the client's own claim, each alone and all together, and
// over nothing else: not over a further revision, nor a change of any other field, nor another client's claim.
func TestMayRewrite(t *testing.T) {
	t.Parallel()
	const own = "own"
	before := persist.Record{Seq: 3, Revision: 7, State: persist.StatePending, LeaseOwner: own, Attempts: 2, Sends: 1, Token: "t"}
	for bits := range 8 {
		now, steps := before, 0
		marked, proven, claimed := bits&1 != 0, bits&2 != 0, bits&4 != 0
		if marked {
			now.Enqueued = true
			steps++
		}
		if proven {
			now.Evidence = &persist.Evidence{Event: "e"}
			steps++
		}
		if claimed {
			steps++
		}
		now.Revision += uint64(steps)
		for _, heeds := range []bool{false, true} {
			want := steps > 0 && (heeds || !proven)
			if got := acts.MayRewrite(&before, &now, own, heeds); got != want {
				t.Errorf("marked %t, proven %t, claimed %t, heeds %t: %t, want %t", marked, proven, claimed, heeds, got, want)
			}
		}
		for name, change := range map[string]func(*persist.Record){
			"a further revision": func(r *persist.Record) { r.Revision += 2 },
			"another operation":  func(r *persist.Record) { r.Seq++ },
			"its end":            func(r *persist.Record) { r.State = persist.StateConfirmed },
			"a hold":             func(r *persist.Record) { r.HoldReason = persist.HoldUndo },
			"another's claim":    func(r *persist.Record) { r.LeaseOwner = "other" },
			"a mark":             func(r *persist.Record) { r.MaybeSent = true },
			"a token":            func(r *persist.Record) { r.Token = "u" },
			"an attempt":         func(r *persist.Record) { r.Attempts++ },
			"a send":             func(r *persist.Record) { r.Sends++ },
		} {
			other := now
			if change(&other); acts.MayRewrite(&before, &other, own, true) {
				t.Errorf("marked %t, proven %t, claimed %t, with %s: it may be written", marked, proven, claimed, name)
			}
		}
		if marked != proven && !claimed { // a mark or evidence of before explains no revision
			was := before
			was.Enqueued, was.Evidence = now.Enqueued, now.Evidence
			if other := now; acts.MayRewrite(&was, &other, "nobody", true) {
				t.Errorf("marked %t, proven %t before: it may be written", marked, proven)
			}
		}
		if claimed { // the record says that another process has it, as before: no claim of this client explains a revision
			theirs, was := now, before
			theirs.LeaseOwner, was.LeaseOwner = "other", "other"
			if acts.MayRewrite(&was, &theirs, own, true) {
				t.Errorf("marked %t, proven %t: another's lease was renewed, and it may be written", marked, proven)
			}
		}
	}
}
