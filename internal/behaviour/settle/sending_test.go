package settle_test

import (
	"context"
	"errors"
	"fmt"
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
// Happened, and an Abandon, which claims nothing, need not wait. No end leaves a lease, and each keeps the time of that send.
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
					ended, getErr := j.Get(t.Context(), rec.ID)
					if err != nil || getErr != nil || ended.LeaseOwner != "" || !ended.DesertedUntil.Equal(rec.SendUntil) {
						t.Errorf("%v, %v: leased by %q, a lost send until %v; want no lease, and %v", err, getErr, ended.LeaseOwner, ended.DesertedUntil, rec.SendUntil)
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

// TestAbsentWaitsAfterAnotherDrive: a process lost its lease and may be frozen, with a send on its way. Another drive of the operation, which
// ends, does not end that send: nobody settles as absent before it is over, a person and Config.Reconcile alike.
func TestAbsentWaitsAfterAnotherDrive(t *testing.T) {
	t.Parallel()
	absent := oncehttp.Resolution{Effect: oncehttp.EffectAbsent}
	run := func(t *testing.T, c *oncehttp.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_ = c.Run(ctx)
	}
	for name, drive := range map[string]func(*testing.T, *oncehttp.Client){
		"a call":   func(t *testing.T, c *oncehttp.Client) { servertest.InDoubt(t, c, "k") },
		"a pass":   run,
		"a Resume": func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) },
	} {
		for _, asked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, Reconcile %t", name, asked), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := memory.New()
					said := oncehttp.Resolution{}
					c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
						cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) { return said, nil }
					}))
					servertest.InDoubt(t, c, "k")
					time.Sleep(time.Hour)
					until := time.Now().Add(time.Minute)
					rec := clienttest.Lookup(t, c, "k")
					rec.LeaseOwner, rec.LeaseUntil, rec.SendUntil = "another", time.Now().Add(time.Second), until
					if _, err := j.Update(t.Context(), rec); err != nil {
						t.Fatal(err)
					}
					time.Sleep(10 * time.Second)
					drive(t, c)
					seen := clienttest.Lookup(t, c, "k")
					if seen.Drives <= rec.Drives || seen.LeaseOwner != "" || !seen.SendUntil.After(until) {
						t.Fatalf("%d drives after %d, leased by %q, on its way until %v: the drive has not taken place", seen.Drives, rec.Drives, seen.LeaseOwner, seen.SendUntil)
					}
					settle := func() (persist.State, error) {
						if !asked {
							err := c.Settle(t.Context(), "k", absent, oncehttp.AsSeen(clienttest.Lookup(t, c, "k")))
							return clienttest.Lookup(t, c, "k").State, err
						}
						held := clienttest.Lookup(t, c, "k")
						held.State, held.HoldReason, held.NextAttempt = persist.StateHeld, persist.HoldExpired, time.Time{}
						if _, err := j.Update(t.Context(), held); err != nil {
							t.Fatal(err)
						}
						said = absent
						var failed error
						for _, err := range c.Resume(t.Context()) {
							failed = err
						}
						return clienttest.Lookup(t, c, "k").State, failed
					}
					if state, err := settle(); state == persist.StateSettled || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("while a send may be on its way: %v, it is %v", err, state)
					}
					time.Sleep(time.Until(until))
					if state, err := settle(); state != persist.StateSettled || err != nil {
						t.Errorf("after that: %v, it is %v", err, state)
					}
				})
			})
		}
	}
}

// TestAbsentWaitsAfterASettlement: a process lost its lease and may be frozen, with a send on its way. A settlement that is taken back does not end that send.
func TestAbsentWaitsAfterASettlement(t *testing.T) {
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
		settle := func(effect persist.Effect) error {
			return c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: effect}, oncehttp.AsSeen(clienttest.Lookup(t, c, "k")))
		}
		clienttest.Must(t, settle(oncehttp.EffectHappened))
		if _, err := c.Unsettle(t.Context(), "k", "a mistake"); err != nil {
			t.Fatal(err)
		}
		if err := settle(oncehttp.EffectAbsent); !errors.Is(err, oncehttp.ErrInFlight) {
			t.Errorf("while the send may be on its way: %v, want ErrInFlight", err)
		}
		time.Sleep(time.Minute)
		clienttest.Must(t, settle(oncehttp.EffectAbsent))
	})
}
