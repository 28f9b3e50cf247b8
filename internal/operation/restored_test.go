package operation_test

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// A restored operation is held, counts as sent before the backup at the latest, and keeps the hold that a release must not end.
func TestRestored(t *testing.T) {
	t.Parallel()
	taken, due := time.Unix(5000, 0), time.Unix(9000, 0)
	early, late := taken.Add(-time.Hour), taken.Add(time.Hour)
	pending := operation.Op{State: persist.StatePending, NextAttempt: due}
	held := func(why persist.HoldReason) operation.Op {
		return operation.Op{State: persist.StateHeld, Hold: why, NextAttempt: due}
	}
	sent := func(o operation.Op, at time.Time) operation.Op { o.MaybeSent, o.FirstSent = true, at; return o }
	replaces := func(o operation.Op) operation.Op { o.Replaces = true; return o }
	enqueued := func(o operation.Op) operation.Op { o.Enqueued = true; return o }
	token := func(o operation.Op, has bool) operation.Op { o.ServerToken, o.Token = true, has; return o }
	now := func(o operation.Op) operation.Op { o.NextAttempt = time.Time{}; return o }
	ended := operation.Op{State: persist.StateConfirmed, Standing: operation.Succeeded}
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
		got := c.before.Restored(taken)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if again := got.Restored(taken); again != got {
			t.Errorf("%s, restored twice: %+v, want %+v", name, again, got)
		}
		released, ok := got.Released()
		if want := c.want.Hold == persist.HoldRestored; ok != want || !ok && released != got {
			t.Errorf("%s: released %t, want %t", name, ok, want)
		}
		want := now(got)
		if want.State, want.Hold = persist.StatePending, ""; ok && released != want {
			t.Errorf("%s, released: %+v, want %+v", name, released, want)
		}
	}
}
