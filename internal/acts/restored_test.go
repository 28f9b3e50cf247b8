package acts_test

import (
	"iter"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// A restored operation is held, counts as sent before the backup at the latest, and keeps the hold that a release must not end.
func TestRestored(t *testing.T) {
	t.Parallel()
	taken, due := time.Unix(5000, 0), time.Unix(9000, 0)
	early, late := taken.Add(-time.Hour), taken.Add(time.Hour)
	pending := operation.Op{Phase: operation.Phase{State: persist.StatePending}, Sending: operation.Sending{NextAttempt: due}}
	held := func(why persist.HoldReason) operation.Op {
		return operation.Op{Phase: operation.Phase{State: persist.StateHeld, Hold: why}, Sending: operation.Sending{NextAttempt: due}}
	}
	sent := func(o operation.Op, at time.Time) operation.Op { o.MaybeSent, o.FirstSent = true, at; return o }
	replaces := func(o operation.Op) operation.Op { o.Replaces = true; return o }
	enqueued := func(o operation.Op) operation.Op { o.Enqueued = true; return o }
	token := func(o operation.Op, has bool) operation.Op { o.ServerToken, o.Token = true, has; return o }
	now := func(o operation.Op) operation.Op { o.NextAttempt = time.Time{}; return o }
	ended := operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}}
	for name, c := range map[string]struct{ before, want operation.Op }{
		"never sent":                {pending, sent(held(persist.HoldRestored), taken)},
		"sent early":                {sent(pending, early), sent(held(persist.HoldRestored), early)},
		"sent by a clock ahead":     {sent(pending, late), sent(held(persist.HoldRestored), taken)},
		"without its token":         {token(pending, false), token(held(persist.HoldRestored), false)},
		"with its token":            {token(pending, true), sent(token(held(persist.HoldRestored), true), taken)},
		"held for a caller":         {held(persist.HoldCaller), sent(held(persist.HoldRestored), taken)},
		"not sent in time":          {held(persist.HoldExpired), sent(held(persist.HoldRestored), taken)},
		"sent, and expired":         {sent(held(persist.HoldExpired), early), sent(held(persist.HoldExpired), early)},
		"unclear":                   {held(persist.HoldUnclear), sent(held(persist.HoldUnclear), taken)},
		"held by a Rekey":           {held(persist.HoldRekey), sent(now(held(persist.HoldRekeyHeld)), taken)},
		"held before its Rekey":     {held(persist.HoldRekeyHeld), sent(now(held(persist.HoldRekeyHeld)), taken)},
		"begun by a Rekey":          {replaces(held(persist.HoldRekey)), sent(now(replaces(held(persist.HoldRekey))), taken)},
		"begun by it, and promised": {enqueued(replaces(held(persist.HoldRekey))), sent(now(enqueued(replaces(held(persist.HoldRekeyHeld)))), taken)},
		"ended":                     {ended, ended},
	} {
		got := acts.Restored(c.before, taken)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if again := acts.Restored(got, taken); again != got {
			t.Errorf("%s, restored twice: %+v, want %+v", name, again, got)
		}
		released, ok := acts.Released(got)
		if want := c.want.Hold == persist.HoldRestored; ok != want || !ok && released != got {
			t.Errorf("%s: released %t, want %t", name, ok, want)
		}
		want := now(got)
		if want.State, want.Hold = persist.StatePending, ""; ok && released != want {
			t.Errorf("%s, released: %+v, want %+v", name, released, want)
		}
	}
}

// TestRestoredHolds walks all unfinished operations: after a restore nobody sends one, and each counts as maybe sent when the backup was taken. A release ends the
// hold of the restore alone, and the window still counts from the backup. (Invariant 58.)
func TestRestoredHolds(t *testing.T) {
	t.Parallel()
	taken := time.Unix(5000, 0)
	later := taken.Add(time.Minute)
	n := 0
	for before := range unfinished(taken) {
		n++
		held := acts.Restored(before, taken)
		if held.State != persist.StateHeld || !(operation.ProspectOf(&held, later) == operation.WaitsForWord || operation.ProspectOf(&held, later) == operation.WaitsForTruth) || (operation.Call{Request: operation.Same}).Open(&held) != operation.SaysHeld ||
			operation.PromiseOf(&held, later) != operation.PromisesHeld {
			t.Fatalf("%+v may be sent: %+v", before, held)
		}
		mayBe := !before.ServerToken || before.Token
		if held.MaybeSent != mayBe || mayBe && (held.FirstSent.IsZero() || held.FirstSent.After(taken)) || before.MaybeSent && !before.FirstSent.IsZero() && held.FirstSent.After(before.FirstSent) {
			t.Fatalf("%+v is not as one sent at %v: %+v", before, taken, held)
		}
		overdue := before.Hold == persist.HoldExpired && !before.MaybeSent
		released, ok := acts.Released(held)
		if wants := before.State == persist.StatePending || before.Hold == persist.HoldRestored || before.Hold == persist.HoldCaller || overdue; ok != wants {
			t.Fatalf("%+v, restored as %+v: released %t, want %t", before, held, ok, wants)
		}
		if !ok && released != held || released.MaybeSent != held.MaybeSent || !released.FirstSent.Equal(held.FirstSent) {
			t.Fatalf("%+v: the release made %+v", held, released)
		}
		if after := operation.ProspectOf(&released, taken.Add(released.Window)); ok && mayBe && after != operation.WillExpire && after != operation.WillHaveNoKey {
			t.Fatalf("%+v is sent past the window from the backup", released)
		}
	}
	if n < 1000 {
		t.Errorf("%d operations", n)
	}
}

// unfinished yields unfinished operations of each kind, as a backup of the time taken may have them.
func unfinished(taken time.Time) iter.Seq[operation.Op] {
	return func(yield func(operation.Op) bool) {
		for _, why := range append(persist.HoldReasons(), "") {
			for bits := range 1 << 6 {
				is := func(bit int) bool { return bits>>bit&1 == 1 }
				for _, first := range []time.Time{{}, taken.Add(-time.Hour), taken.Add(time.Hour)} {
					o := operation.Op{Phase: operation.Phase{State: persist.StateHeld, Hold: why}, KeyFacts: operation.KeyFacts{ServerToken: is(2), Token: is(2) && is(3)}, Sending: operation.Sending{Window: 24 * time.Hour, Enqueued: is(0), FirstSent: first}, Replaces: is(1)}
					o.MaybeSent = !first.IsZero() && (!o.ServerToken || o.Token)
					if why == "" {
						o.State = persist.StatePending
					}
					if is(4) {
						o.NextAttempt = taken.Add(time.Hour)
					}
					if is(5) {
						o.SendBefore = taken.Add(-time.Minute)
					}
					if !yield(o) {
						return
					}
				}
			}
		}
	}
}
