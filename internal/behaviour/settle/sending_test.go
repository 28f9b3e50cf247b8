package settle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestAbsentWaitsForASend: an operation whose process may be frozen, with a send on its way, is not settled as absent before that send is over.
// Happened, and an Abandon, which claims nothing, need not wait.
func TestAbsentWaitsForASend(t *testing.T) {
	t.Parallel()
	settle := func(effect persist.Effect) func(context.Context, *oncehttp.Client, oncehttp.LookupOption) error {
		return func(ctx context.Context, c *oncehttp.Client, o oncehttp.LookupOption) error {
			return c.Settle(ctx, "k", oncehttp.Resolution{Effect: effect}, o)
		}
	}
	for name, act := range map[string]struct {
		do    func(context.Context, *oncehttp.Client, oncehttp.LookupOption) error
		waits bool
	}{
		"absent":   {settle(oncehttp.EffectAbsent), true},
		"happened": {settle(oncehttp.EffectHappened), false},
		"abandon": {func(ctx context.Context, c *oncehttp.Client, o oncehttp.LookupOption) error {
			return c.Abandon(ctx, "k", o)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := memory.New()
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
				servertest.InDoubt(t, c, "k")
				time.Sleep(time.Hour)
				rec := clienttest.Lookup(t, c, "k")
				rec.LeaseOwner, rec.LeaseUntil, rec.SendUntil = "another", time.Now().Add(time.Second), time.Now().Add(time.Minute)
				if _, err := j.Update(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				seen := clienttest.Lookup(t, c, "k")
				err := act.do(t.Context(), c, oncehttp.AsSeen(seen))
				if !act.waits {
					if err != nil {
						t.Errorf("%v, want nil", err)
					}
					return
				}
				if !errors.Is(err, oncehttp.ErrInFlight) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("%v, want ErrInFlight and ErrOutcomeUnknown", err)
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending {
					t.Errorf("it is %v", rec.State)
				}
				time.Sleep(time.Minute)
				if err := act.do(t.Context(), c, oncehttp.AsSeen(clienttest.Lookup(t, c, "k"))); err != nil {
					t.Errorf("later: %v, want nil", err)
				}
			})
		})
	}
}
