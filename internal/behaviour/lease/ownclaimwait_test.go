package lease_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// waiting runs a client that waits for its limiter, for a minute, while the journal renews no lease and the client claims anew
// what it has. It is called at 50 s.
func waiting(t *testing.T, w *wiretest.Wire) (o *outage, c *oncehttp.Client, stop func() error) {
	t.Helper()
	o = &outage{Journal: memory.New()}
	limit := &clienttest.Pace{Period: time.Minute, Next: time.Now().Add(time.Minute)}
	c, _ = clienttest.New(t, w, clienttest.On(o, slowAnswers, func(cfg *oncehttp.Config) {
		cfg.Profile = profile.None()
		cfg.Authorize = func(req *http.Request) error { return limit.Wait(req.Context()) } // which keeps its claim
	}))
	stop = clienttest.Run(t, c)
	if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	o.begin(outlasting)
	time.Sleep(49 * time.Second)
	o.taken(t)
	return o, c, stop
}

// TestOwnClaimWhileWaiting: it goes on with that claim, and no other process sends meanwhile.
func TestOwnClaimWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 3 * time.Minute}}}
		o, c, stop := waiting(t, w)
		other, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(o.Journal), slowAnswers, func(cfg *oncehttp.Config) { cfg.Profile = profile.None() }))
		stopOther := clienttest.Run(t, other)
		time.Sleep(10 * time.Minute)
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || w.Count() != 1 {
			t.Errorf("it is %v %s after %d sends, want confirmed after 1", rec.State, rec.HoldReason, w.Count())
		}
		for _, stop := range []func() error{stop, stopOther} {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestLimitedIsGivenBack: where Run ends while a limiter waits, before a third of the lease and after it, the operation is free at once, and
// as it was.
func TestLimitedIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, waited := range []time.Duration{time.Second, time.Minute} {
		journaltest.Two(t, func(t *testing.T, j, _ persist.Journal) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(&clienttest.Bucket{Period: time.Hour})))
			clienttest.Enqueue(t, c, 1)
			stop := clienttest.Run(t, c)
			time.Sleep(waited)
			if err := stop(); err != nil {
				t.Error(err)
			}
			rec := clienttest.Lookup(t, c, "k0")
			if rec.LeaseOwner != "" || rec.MaybeSent || rec.Attempts != 0 || rec.State != persist.StatePending || rec.NextAttempt.After(time.Now()) || w.Count() != 0 {
				t.Errorf("after %v it is %v, leased by %q, maybe sent %t, due at %v, %d sends", waited, rec.State, rec.LeaseOwner, rec.MaybeSent, rec.NextAttempt, w.Count())
			}
		})
	}
}
