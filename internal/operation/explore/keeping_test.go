package explore

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestSweepsForgetNothingNeeded goes through all records of the search, with and without a successor, and sweeps each by several limits at several times. The
// rules are those of persist (Limits.Sweep), since each journal applies them by itself, beside this module, too. (Invariants 2, 3, 9, 17, 34, 53, 56 and 57.)
func TestSweepsForgetNothingNeeded(t *testing.T) {
	t.Parallel()
	var did struct{ kept, dropped, stripped, erased int }
	seen := map[Rec]bool{}
	for _, s := range Slices(false) {
		if r, _ := s.Search(1_000); r.Broken != "" { // the error says that there are more states
			t.Fatal(r.Broken)
		}
		for _, rec := range s.recs {
			if !rec.Exists || seen[*rec] {
				continue
			}
			seen[*rec] = true
			for bits := range 1 << 7 {
				before := recordOf(rec)
				if bits&1 != 0 {
					before.KeepKey, before.KeepText = 30*time.Hour, 26*time.Hour
				}
				if bits&2 != 0 && before.State.Final() {
					before.ReplacedBy = "next"
				}
				before.KeyTold = bits&4 != 0 && before.Generated && before.State.Final()
				before.Swept = bits&8 != 0 && before.State.Final()
				if bits&16 != 0 { // delivered
					before.OwedFrom = time.Time{}
				}
				if bits&32 != 0 && before.State.Final() {
					before.Evidence = &persist.Evidence{Event: "event"}
				}
				if bits&64 != 0 {
					before.Replaces = "before"
				}
				for hours := time.Duration(0); hours < 56; hours += 4 {
					now := before.Finished.Add(hours * time.Hour)
					for _, l := range []persist.Limits{{}, {KeepAnswer: 3 * time.Hour}, {Prune: true, KeepAnswer: -1, KeepKey: -1, KeepText: -1}} {
						after := before.Clone()
						drop, strip := l.Sweep(&after, now)
						if strip {
							l.Strip(&after, now, []byte("secret of the journal, of 32 byte"))
						}
						if why := forgotten(&before, &after, &l, now, drop, strip); why != "" {
							t.Fatalf("%s, %d hours after the end, %+v: %s: %+v", s.Name, hours, l, why, before)
						}
						if at, ever := before.SweepAt(); !l.Prune && l.KeepAnswer == 0 && (drop || strip) != (ever && !now.Before(at)) {
							t.Fatalf("%s, %d hours after the end: dropped %t, stripped %t, and a journal would look at %v, %t: %+v", s.Name, hours, drop, strip, at, ever, before)
						}
						switch {
						case drop:
							did.dropped++
						case after.Erased && !before.Erased:
							did.erased++
						case strip:
							did.stripped++
						default:
							did.kept++
						}
					}
				}
			}
		}
	}
	if did.kept == 0 || did.dropped == 0 || did.stripped == 0 || did.erased == 0 {
		t.Errorf("not all was done: %+v", did)
	}
}

// forgotten returns the invariant broken by a sweep of one record; empty if none is.
func forgotten(before, after *persist.Record, l *persist.Limits, now time.Time, drop, strip bool) string {
	was, is := operation.OpOf(before, 0), operation.OpOf(after, 0)
	awaited := before.Generated && before.Unreported && now.Before(before.Finished.Add(before.Window))
	erasing := acts.ErasingOf(before, now)
	was.Unreported = awaited // a sweep after the window ends it
	switch {
	case !drop && !strip:
		return ""
	case !before.State.Final():
		return "3: it has not ended"
	case before.Owed():
		return "53: its end is owed to OnResult"
	case drop && awaited, awaited && !is.EndsUnreported(false):
		return "17: a caller without a key may still have to hear of its end"
	case drop && before.Evidence != nil && (before.ReplacedBy != "" || was.IsContradicted()):
		return "56: what was begun in its place must find the evidence"
	case drop && !l.Prune && (!before.Generated || before.KeyTold) && before.KeepKey == 0:
		return "34: a chosen key is kept for ever"
	case drop && !l.Prune && (before.ReplacedBy != "" || before.Replaces != "") && before.KeepKey == 0:
		return "54: another operation names it"
	case drop:
		return ""
	case is.Standing.Effect() != was.Standing.Effect() || is.State != was.State:
		return "9: its end is another one"
	case operation.Call{Request: operation.Same}.Open(&is) >= operation.AsksAgain:
		return "2: it may be sent"
	case after.Erased && !before.Erased && erasing.MayErase(&was) != acts.MayAct:
		return "57: its text is needed"
	}
	return ""
}

// recordOf returns the record of an operation of the search.
func recordOf(r *Rec) persist.Record {
	op := &r.Op
	rec := persist.Record{
		ID: persist.ID{Key: "key"}, State: op.State, HoldReason: op.Hold, Effect: op.Standing.Effect(), Protected: op.Protected, Generated: op.Generated, Business: op.Business,
		Enqueued: op.Enqueued, ServerToken: op.ServerToken, MaybeSent: op.MaybeSent, FirstSent: op.FirstSent, SendUntil: op.SendUntil, DesertedUntil: op.Deserted,
		SendBefore: op.SendBefore, Window: op.Window, Unreported: op.Unreported, Results: op.Results, OwedFrom: op.OwedFrom, Body: []byte("body"), Content: "content",
	}
	if op.Answered {
		rec.Answer = &persist.Answer{Status: op.Status, Stored: r.Stored, BodyDropped: op.Dropped}
	}
	if op.Witnessed {
		rec.Evidence = &persist.Evidence{Event: "event"}
	}
	if op.State.Final() {
		rec.Finished = began.Add(time.Hour)
	}
	return rec
}
