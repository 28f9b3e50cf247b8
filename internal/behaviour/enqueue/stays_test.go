package enqueue_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestEnqueueKeepsTheLease: an Enqueue of what another process sends, which renews its lease between Enqueue's read and its
// write, does not shorten the lease: the record is that process's for as long as it believes. One that has ended stays so.
func TestEnqueueKeepsTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 25 * time.Second}}}
		owner, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j)))
		slow := &journaltest.Faulty{Journal: j, OnUpdate: func() error { time.Sleep(2 * time.Second); return nil }}
		other, _ := clienttest.New(t, w, clienttest.On(&journaltest.Leasing{Journal: slow, Claimer: j}))
		start, done := time.Now(), make(chan error)
		go func() { _, err := owner.DoKey(clienttest.Post(t, "{}"), "k"); done <- err }()
		time.Sleep(9 * time.Second) // the lease of 30 s is renewed every 10 s
		if err := other.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		rec := clienttest.Lookup(t, owner, "k")
		if until := rec.LeaseUntil.Sub(start); until < 40*time.Second || until > 60*time.Second || !rec.Enqueued {
			t.Errorf("the lease lasts until %v after the start, want that of the renewal after 10s at least", until)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		rec := clienttest.Lookup(t, c, "k")
		rec.LeaseOwner, rec.LeaseUntil = "dead", time.Now()
		if _, err := j.Update(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.LeaseUntil.After(time.Now()) || !rec.Enqueued {
			t.Errorf("a lease of nobody until %v", rec.LeaseUntil)
		}
	})
}

// TestEnqueueBesideTheDead: an Enqueue of what a process had that has died does not keep the operation from being sent for
// long, whatever this client's own Lease is.
func TestEnqueueBesideTheDead(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{5 * time.Second, 30 * time.Second, time.Hour} {
		for _, left := range []time.Duration{time.Second, 15 * time.Second, 30 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				j := memory.New()
				first, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
				_, _ = first.DoKey(clienttest.Post(t, "{}"), "k")
				rec := clienttest.Lookup(t, first, "k")
				rec.LeaseOwner, rec.LeaseUntil = "dead", time.Now().Add(left)
				if _, err := j.Update(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(journaltest.NewLeasing(j), func(cfg *oncehttp.Config) { cfg.Lease = lease }))
				if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
					t.Fatal(err)
				}
				rec = clienttest.Lookup(t, c, "k")
				if until := time.Until(rec.LeaseUntil); until < left || until > 45*time.Second || !rec.Enqueued {
					t.Errorf("a Lease of %v: %v were left, and are %v; want 45s at most", lease, left, until)
				}
			})
		}
	}
}

// TestEnqueueBesideALongLease: nor does it shorten the lease of a process whose leases are longer than this client's.
func TestEnqueueBesideALongLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 28 * time.Second}}}
		owner, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), func(cfg *oncehttp.Config) { cfg.Lease = time.Minute }))
		slow := &journaltest.Faulty{Journal: j, OnUpdate: func() error { time.Sleep(2 * time.Second); return nil }}
		other, _ := clienttest.New(t, w, clienttest.On(&journaltest.Leasing{Journal: slow, Claimer: j}, func(cfg *oncehttp.Config) { cfg.Lease = 5 * time.Second }))
		start, done := time.Now(), make(chan error)
		go func() { _, err := owner.DoKey(clienttest.Post(t, "{}"), "k"); done <- err }()
		time.Sleep(19 * time.Second) // the lease of a minute is renewed every 20 s
		if err := other.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		if until := clienttest.Lookup(t, owner, "k").LeaseUntil.Sub(start); until < 80*time.Second {
			t.Errorf("the lease lasts until %v after the start, want that of the renewal after 20s at least", until)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestEnqueueBesideACall: an Enqueue that returned nil stays until it is final,
// whatever becomes of the call that was under way with its key, in this process or in
// another.
func TestEnqueueBesideACall(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reply wiretest.Reply
		state persist.State // once the call is over
	}{
		"not sent":       {wiretest.Reply{Refused: true, Delay: time.Second}, persist.StatePending},
		"refused":        {wiretest.Reply{Status: 403, Delay: time.Second}, persist.StatePending},
		"lost":           {wiretest.Reply{Err: wiretest.ErrLost, Delay: time.Second}, persist.StatePending},
		"server error":   {wiretest.Reply{Status: 500, Delay: time.Second}, persist.StatePending},
		"still working":  {wiretest.Reply{Status: 409, Delay: time.Second}, persist.StatePending},
		"redirected":     {wiretest.Reply{Status: 301, Delay: time.Second}, persist.StateHeld},
		"confirmed":      {wiretest.Reply{Status: 201, Delay: time.Second}, persist.StateConfirmed},
		"declined":       {wiretest.Reply{Status: 402, Delay: time.Second}, persist.StateConfirmed},
		"another's key":  {wiretest.Reply{Status: 422, Header: "Content-Type: application/problem+json", Delay: time.Second}, persist.StateMismatched},
		"Retry-After 1h": {wiretest.Reply{Status: 429, Header: "Retry-After: 3600", Delay: time.Second}, persist.StatePending},
	}
	for name, r := range rows {
		for _, plain := range []bool{false, true} {
			for _, abroad := range []bool{false, true} {
				t.Run(fmt.Sprint(name, plain, abroad), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						j := memory.New()
						w := &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}
						c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
						other := c
						if abroad {
							other, _ = clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), clienttest.OneAttempt))
						}
						var wg sync.WaitGroup
						wg.Go(func() { call(t, c, plain) })
						synctest.Wait()
						if w.Count() != 1 {
							t.Fatal("it is not on the wire")
						}
						for range 2 {
							if err := other.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
								t.Fatalf("Enqueue: %v", err)
							}
						}
						wg.Wait()
						rec := clienttest.Lookup(t, c, "k")
						if rec.State != r.state || !rec.Enqueued || rec.State == persist.StateHeld && rec.HoldReason == persist.HoldCaller {
							t.Fatalf("it stands %v %q, enqueued %v; want %v", rec.State, rec.HoldReason, rec.Enqueued, r.state)
						}
						if rec.State == persist.StatePending {
							w.Then(wiretest.Reply{Status: 201})
							time.Sleep(2 * time.Hour)
							if got := clienttest.Resume(t, c)["k"]; got.Err != nil || got.Result.Answer.Status != 201 {
								t.Errorf("Resume: %+v", got)
							}
						}
						if len(w.Keys()) != 1 {
							t.Errorf("keys %v", w.Keys())
						}
					})
				})
			}
		}
	}
}

// call makes one call with the key "k", of a caller that sees plain HTTP or not.
func call(t *testing.T, c *oncehttp.Client, plain bool) {
	if !plain {
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if err != nil {
			clienttest.ExactlyOne(t, err)
		}
		if errors.Is(err, oncehttp.ErrNoEffect) && !errors.Is(err, oncehttp.ErrKeyReused) {
			t.Errorf("%v, though it is enqueued", err)
		}
		return
	}
	req := clienttest.Post(t, "{}")
	req.Header.Set("Idempotency-Key", "k")
	if resp, err := c.StandardClient().Do(req); err == nil {
		resp.Body.Close()
	}
}

// TestEnqueueAfterACall: it takes over what a call left behind, also what is held for
// a caller that sees plain HTTP.
func TestEnqueueAfterACall(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprint(plain), func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500}, {Refused: true}, {Status: 500}, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				call(t, c, plain)
				if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
					t.Fatal(err)
				}
				call(t, c, true) // once more by a caller that sees plain HTTP
				for range 2 {
					time.Sleep(10 * time.Minute)
					clienttest.Resume(t, c)
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || !rec.Enqueued || w.Count() != 4 {
					t.Errorf("it stands %v %q after %d sends", rec.State, rec.HoldReason, w.Count())
				}
			})
		})
	}
}

// TestEnqueueIsNotUndone: what no journal has written is not acknowledged.
func TestEnqueueIsNotUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Faulty{Journal: memory.New()}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		j.OnUpdate = journaltest.Fails(journaltest.ErrDisk)
		err := c.Enqueue(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk) || clienttest.Lookup(t, c, "k").Enqueued {
			t.Errorf("%v, want ErrOutcomeUnknown", err)
		}
		j.OnUpdate = nil
		if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil || !clienttest.Lookup(t, c, "k").Enqueued {
			t.Errorf("again: %v", err)
		}
	})
}

// TestEnqueueUnderStress: calls that fail without effect and forget, and Enqueues
// beside them, on both journals.
func TestEnqueueUnderStress(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		other, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		var wg sync.WaitGroup
		for i := range 20 {
			key := oncehttp.NewScope("x").Key(fmt.Sprint(i))
			for range 3 {
				wg.Go(func() { _, _ = c.DoKey(clienttest.Post(t, "{}"), key) })
			}
			wg.Go(func() {
				if err := other.Enqueue(clienttest.Post(t, "{}"), key); err != nil {
					t.Errorf("Enqueue: %v", err)
				}
			})
			wg.Go(func() { clienttest.Resume(t, other) })
		}
		wg.Wait()
		for i := range 20 {
			if rec := clienttest.Lookup(t, c, oncehttp.NewScope("x").Key(fmt.Sprint(i))); rec.State != persist.StatePending || !rec.Enqueued || rec.MaybeSent {
				t.Errorf("%s stands %v, enqueued %v, maybe sent %v", rec.Key, rec.State, rec.Enqueued, rec.MaybeSent)
			}
		}
	})
}

// TestEnqueueOfWhatIsOver: it promises nothing that nobody will keep.
func TestEnqueueOfWhatIsOver(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reply wiretest.Reply
		then  func(t *testing.T, c *oncehttp.Client)
		is    []error // none: nil
	}{
		"confirmed":  {wiretest.Reply{Status: 201}, nil, nil},
		"declined":   {wiretest.Reply{Status: 402}, nil, []error{oncehttp.ErrFinal}},
		"mismatched": {wiretest.Mismatch(), nil, []error{oncehttp.ErrFinal, oncehttp.ErrKeyReused}},
		"redirected": {wiretest.Reply{Status: 301}, nil, []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrHeld}},
		"it happened": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) {
			_ = c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened})
		}, nil},
		"it did not": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) {
			_ = clienttest.AbsentAsSeen(c, t.Context(), "k")
		}, []error{oncehttp.ErrNoEffect, oncehttp.ErrSettled}},
		"given up": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) { _ = c.Abandon(t.Context(), "k") },
			[]error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrAbandoned}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}, clienttest.On(j, clienttest.OneAttempt))
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
				if r.then != nil {
					r.then(t, c)
				}
				err := c.Enqueue(clienttest.Post(t, "{}"), "k")
				if len(r.is) == 0 && err != nil {
					t.Errorf("%v, want nil", err)
				}
				for _, is := range r.is {
					if clienttest.ExactlyOne(t, err); !errors.Is(err, is) {
						t.Errorf("%v, want %v", err, is)
					}
				}
			})
		})
	}
}

// TestEnqueueRenews an operation that was never sent in time: nothing of it was sent,
// so that it may be.
func TestEnqueueRenews(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprint(held), func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j))
				if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(25 * time.Hour)
				if held {
					clienttest.Resume(t, c)
					if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateHeld || w.Count() != 0 {
						t.Fatalf("it is %v", rec.State)
					}
				}
				if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
					t.Fatalf("again: %v", err)
				}
				if got := clienttest.Resume(t, c)["k"]; got.Err != nil || w.Count() != 1 {
					t.Errorf("%+v after %d sends, want it sent", got, w.Count())
				}
			})
		})
	}
}
