package settle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// acts are what a person does about an operation that was looked at. They lead to "k2" where they begin it anew.
func acts() map[string]func(context.Context, *oncehttp.Client, ...oncehttp.LookupOption) error {
	settle := func(e persist.Effect) func(context.Context, *oncehttp.Client, ...oncehttp.LookupOption) error {
		return func(ctx context.Context, c *oncehttp.Client, o ...oncehttp.LookupOption) error {
			return c.Settle(ctx, "k", oncehttp.Resolution{Effect: e}, o...)
		}
	}
	return map[string]func(context.Context, *oncehttp.Client, ...oncehttp.LookupOption) error{
		"absent": settle(oncehttp.EffectAbsent), "happened": settle(oncehttp.EffectHappened),
		"Abandon": func(ctx context.Context, c *oncehttp.Client, o ...oncehttp.LookupOption) error {
			return c.Abandon(ctx, "k", o...)
		},
		"Rekey": func(ctx context.Context, c *oncehttp.Client, o ...oncehttp.LookupOption) error {
			return c.Rekey(ctx, "k", "k2", servertest.Why, o...)
		},
		"Assign": func(ctx context.Context, c *oncehttp.Client, o ...oncehttp.LookupOption) error {
			return c.Assign(oncehttp.ContextWithAccount(ctx, "customer"), "k", o...)
		},
	}
}

// claimLater claims what is due, in an hour, as another process.
func claimLater(t *testing.T, j persist.Journal, lease time.Duration) persist.Record {
	t.Helper()
	time.Sleep(time.Hour)
	claimer, _ := persist.As[persist.Claimer](j)
	got, _, err := claimer.Claim(t.Context(), persist.Query{AllAccounts: true}, "another", lease, 1)
	if err != nil || len(got) != 1 {
		t.Fatalf("claimed %d: %v", len(got), err)
	}
	return got[0]
}

// since is something that happens between a look and an act.
type since struct {
	happens func(*testing.T, *oncehttp.Client, persist.Journal)
	moved   bool
}

// sinces need no more of a journal than leases.
func sinces() map[string]since {
	update := func(change func(*persist.Record)) func(*testing.T, *oncehttp.Client, persist.Journal) {
		return func(t *testing.T, c *oncehttp.Client, j persist.Journal) {
			rec := clienttest.Lookup(t, c, "k")
			change(&rec)
			if _, err := j.Update(t.Context(), rec); err != nil {
				t.Error(err)
			}
		}
	}
	return map[string]since{
		"nothing": {func(*testing.T, *oncehttp.Client, persist.Journal) {}, false},
		"a pause": {update(func(r *persist.Record) { r.NextAttempt = r.NextAttempt.Add(time.Minute) }), false},
		"a heartbeat, and it is held": {func(t *testing.T, c *oncehttp.Client, j persist.Journal) {
			update(func(r *persist.Record) { r.LeaseOwner, r.LeaseUntil = "another", time.Now().Add(time.Second) })(t, c, j)
			claimer, _ := persist.As[persist.Claimer](j)
			_, _, _ = claimer.Renew(t.Context(), "another", 2*time.Second, []persist.ID{{Key: "k"}})
			time.Sleep(10 * time.Minute) // until no send of it can be on its way
		}, false},
		"an Enqueue": {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) {
			clienttest.Must(t, c.Enqueue(servertest.Pay(t, servertest.Order), "k"))
		}, false},
		"a hold": {update(func(r *persist.Record) { r.State, r.HoldReason = persist.StateHeld, persist.HoldUnclear }), true},
		"a claim that is given back": {func(t *testing.T, _ *oncehttp.Client, j persist.Journal) {
			rec := claimLater(t, j, time.Hour)
			rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
			if _, err := j.Update(t.Context(), rec); err != nil {
				t.Error(err)
			}
		}, true},
		"a claim whose process dies": {func(t *testing.T, _ *oncehttp.Client, j persist.Journal) {
			claimLater(t, j, time.Second)
			time.Sleep(time.Minute)
		}, true},
		"a pass that sends, and its answer is lost": {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) {
			time.Sleep(time.Hour)
			clienttest.Resume(t, c)
		}, true},
		"a call that goes on with it": {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) {
			if _, err := c.DoKey(servertest.Pay(t, servertest.Order), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Error(err)
			}
		}, true},
	}
}

// TestActIsBoundToWhatWasSeen: where the operation has moved since the look, no act changes it; where it has not, each does.
func TestActIsBoundToWhatWasSeen(t *testing.T) {
	t.Parallel()
	for name, act := range acts() {
		for when, s := range sinces() {
			t.Run(name+", after "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := memory.New()
					c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
					servertest.InDoubt(t, c, "k")
					rec := clienttest.Lookup(t, c, "k")
					s.happens(t, c, j)
					before := journaltest.Contents(t, j)
					err := act(t.Context(), c, oncehttp.AsSeen(rec))
					switch unsettled := name == "Rekey" && errors.Is(err, oncehttp.ErrOutcomeUnknown) && !errors.Is(err, oncehttp.ErrStale); {
					case !s.moved && err != nil && !unsettled: // Rekey wants it settled
						t.Errorf("%v, want nil", err)
					case !s.moved:
						return
					case !errors.Is(err, oncehttp.ErrStale) || !errors.Is(err, oncehttp.ErrOutcomeUnknown):
						t.Errorf("%v, want ErrStale and ErrOutcomeUnknown", err)
					}
					clienttest.ExactlyOne(t, err)
					if after := journaltest.Contents(t, j); fmt.Sprint(after) != fmt.Sprint(before) {
						t.Errorf("the journal has changed: %+v, was %+v", clienttest.Lookup(t, c, "k"), rec)
					}
				})
			})
		}
	}
}

// TestPaidOnceThoughAPersonLooked: a person looks and finds nothing, a worker sends, and the person's word begins no second payment.
func TestPaidOnceThoughAPersonLooked(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}} // each send takes effect, and its answer is lost
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		clienttest.Enqueue(t, c, 1)
		rec := clienttest.Lookup(t, c, "k0")
		clienttest.Resume(t, c)
		settled := c.Settle(t.Context(), "k0", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, oncehttp.AsSeen(rec))
		again := c.Rekey(t.Context(), "k0", "k1", servertest.Why, oncehttp.AsSeen(rec))
		clienttest.Resume(t, c)
		if !errors.Is(settled, oncehttp.ErrStale) || !errors.Is(again, oncehttp.ErrStale) || w.Count() != 1 {
			t.Errorf("%v, then %v; %d sends, want 1", settled, again, w.Count())
		}
	})
}

// TestSeenWhileItWasSent: what was looked at while a call, a pass or another process had it proves nothing, also once that has ended.
func TestSeenWhileItWasSent(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		slow := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost, Delay: time.Second}}}
		c, _ := clienttest.New(t, slow, clienttest.On(j, clienttest.OneAttempt))
		done := make(chan error)
		go func() { _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); done <- err }()
		synctest.Wait()
		rec := clienttest.Lookup(t, c, "k")
		var listed []persist.Record
		for rec, err := range c.Unfinished(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, rec)
		}
		<-done
		if rec.LeaseOwner == "" || len(listed) != 1 || listed[0].LeaseOwner == "" {
			t.Errorf("Lookup and Unfinished do not say that it is being sent: %+v", listed)
		}
		now := clienttest.Lookup(t, c, "k")
		if now.LeaseOwner != "" {
			t.Errorf("it is said to be sent by %q, and is not", now.LeaseOwner)
		}
		late := now
		late.LeaseOwner = rec.LeaseOwner // as of a process that died before it could count its send
		for _, seen := range []persist.Record{rec, late} {
			for name, act := range acts() {
				if err := act(t.Context(), c, oncehttp.AsSeen(seen)); !errors.Is(err, oncehttp.ErrStale) {
					t.Errorf("%s: %v, want ErrStale", name, err)
				}
			}
		}
		if err := c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, oncehttp.AsSeen(now)); err != nil {
			t.Error(err)
		}
	})
}

// TestNeedsAsSeen: nobody settles as absent, or begins anew, what was not looked at.
func TestNeedsAsSeen(t *testing.T) {
	t.Parallel()
	for name, act := range acts() {
		synctest.Test(t, func(t *testing.T) {
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.OneAttempt)
			servertest.InDoubt(t, c, "k")
			needs := slices.Contains([]string{"absent", "Rekey"}, name)
			err := act(t.Context(), c)
			if errors.Is(err, oncehttp.ErrConfig) != needs || needs && !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%s: %v, want ErrConfig %t", name, err, needs)
			}
		})
	}
}

// TestOwnWriteIsNotStale: with one look a person settles and begins anew, and says the same again.
func TestOwnWriteIsNotStale(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		servertest.InDoubt(t, c, "k")
		seen := oncehttp.AsSeen(clienttest.Lookup(t, c, "k"))
		clienttest.Must(t, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, seen))
		err := c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, seen)
		if !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrSettled) || errors.Is(err, oncehttp.ErrStale) {
			t.Errorf("the same again: %v", err)
		}
		for range 2 {
			clienttest.Must(t, c.Rekey(t.Context(), "k", "k2", servertest.Why, seen))
		}
		clienttest.Pass(t, c)
		clienttest.Must(t, c.Rekey(t.Context(), "k", "k2", servertest.Why, seen))
		if w.Count() != 2 {
			t.Errorf("%d sends", w.Count())
		}
	})
}

// TestStaleOfWhatHasEnded: the verdict is that on the operation as it stands.
func TestStaleOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	for name, act := range acts() {
		for status, verdict := range map[int]error{201: oncehttp.ErrFinal, 418: oncehttp.ErrFinal, 301: oncehttp.ErrOutcomeUnknown} {
			synctest.Test(t, func(t *testing.T) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: status}}}, clienttest.On(memory.New()))
				clienttest.Enqueue(t, c, 1)
				clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
				rec := clienttest.Lookup(t, c, "k")
				clienttest.Resume(t, c)
				err := act(t.Context(), c, oncehttp.AsSeen(rec))
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrStale) || !errors.Is(err, verdict) {
					t.Errorf("%s after %d: %v, want ErrStale and %v", name, status, err, verdict)
				}
			})
		}
	}
}

// TestActIsOutrun: another process changes the record between the act's own look and its write.
func TestActIsOutrun(t *testing.T) {
	t.Parallel()
	for name, act := range acts() {
		if name == "Rekey" || name == "Assign" { // which write nothing here, or by a method that faulty does not know
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			below := memory.New()
			j := &journaltest.Faulty{Journal: below}
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
			servertest.InDoubt(t, c, "k")
			rec := clienttest.Lookup(t, c, "k")
			j.OnFinish = func() error {
				now, _ := below.Get(t.Context(), rec.ID)
				now.Drives++
				now.LeaseOwner, now.LeaseUntil = "another", time.Now().Add(time.Minute)
				_, err := below.Update(t.Context(), now)
				return err
			}
			err := act(t.Context(), c, oncehttp.AsSeen(rec))
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrStale) || clienttest.Lookup(t, c, "k").State != persist.StatePending {
				t.Errorf("%s: %v, want ErrStale", name, err)
			}
		})
	}
}

// TestReconcileIsBound: where the operation is let go, sent and held again while Config.Reconcile looks, its word is not taken.
func TestReconcileIsBound(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		moves := true
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 301}}}, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(ctx context.Context, rec persist.Record) (oncehttp.Resolution, error) {
				if now, err := j.Get(ctx, rec.ID); moves && err == nil { // as another process does
					now.Drives, now.Sends = now.Drives+1, now.Sends+1
					if _, err := j.Update(ctx, now); err != nil {
						t.Error(err)
					}
				}
				return oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, nil
			}
		}))
		clienttest.Enqueue(t, c, 1)
		clienttest.Resume(t, c) // the redirect holds it
		got := clienttest.Resume(t, c)["k0"]
		if clienttest.ExactlyOne(t, got.Err); !errors.Is(got.Err, persist.ErrStale) || !errors.Is(got.Err, oncehttp.ErrOutcomeUnknown) || clienttest.Lookup(t, c, "k0").State != persist.StateHeld {
			t.Errorf("%v, record %v", got.Err, clienttest.Lookup(t, c, "k0").State)
		}
		moves = false
		if clienttest.Resume(t, c); clienttest.Lookup(t, c, "k0").State != persist.StateSettled {
			t.Error("the next word is not taken")
		}
	})
}

// TestCallThatCannotCount: a call that has gone on with the operation and could not record its send has moved it all the same.
func TestCallThatCannotCount(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, below persist.Journal) {
		j := &journaltest.Faulty{Journal: below}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
		servertest.InDoubt(t, c, "k")
		rec, updates := clienttest.Lookup(t, c, "k"), 0
		j.OnUpdate = func() error {
			if updates++; updates > 1 {
				return journaltest.ErrDisk
			}
			return nil
		}
		servertest.InDoubt(t, c, "k")
		now, _ := below.Get(t.Context(), rec.ID)
		err := c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, oncehttp.AsSeen(rec))
		if now.Sends != rec.Sends || !errors.Is(err, oncehttp.ErrStale) {
			t.Errorf("%d sends on record, %d before; %v, want ErrStale", now.Sends, rec.Sends, err)
		}
	})
}
