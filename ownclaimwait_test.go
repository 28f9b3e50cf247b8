package oncehttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// waiting runs a client that waits for its limiter, for a minute, while the journal renews no lease and the client claims anew
// what it has. It is called at 50 s.
func waiting(t *testing.T, w *wire) (o *outage, c *oncehttp.Client, stop func() error) {
	t.Helper()
	o = &outage{Journal: memory.New()}
	limit := &pace{period: time.Minute, next: time.Now().Add(time.Minute)}
	c, _ = newClient(t, w, on(o, slowAnswers, func(cfg *oncehttp.Config) {
		cfg.Profile = profile.None()
		cfg.Authorize = func(req *http.Request) error { return limit.Wait(req.Context()) } // which keeps its claim
	}))
	stop = running(t, c)
	if err := c.Enqueue(post(t, "{}"), "k"); err != nil {
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
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201, delay: 3 * time.Minute}}}
		o, c, stop := waiting(t, w)
		other, _ := newClient(t, w, on(newFairLeasing(o.Journal), slowAnswers, func(cfg *oncehttp.Config) { cfg.Profile = profile.None() }))
		stopOther := running(t, other)
		time.Sleep(10 * time.Minute)
		if rec := lookup(t, c, "k"); rec.State != persist.StateConfirmed || w.count() != 1 {
			t.Errorf("it is %v %s after %d sends, want confirmed after 1", rec.State, rec.HoldReason, w.count())
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
		twoOf(t, func(t *testing.T, j, _ persist.Journal) {
			w := &wire{replies: []reply{{status: 201}}}
			c, _ := newClient(t, w, on(j, limitedBy(&bucket{period: time.Hour})))
			enqueue(t, c, 1)
			stop := running(t, c)
			time.Sleep(waited)
			if err := stop(); err != nil {
				t.Error(err)
			}
			rec := lookup(t, c, "k0")
			if rec.LeaseOwner != "" || rec.MaybeSent || rec.Attempts != 0 || rec.State != persist.StatePending || rec.NextAttempt.After(time.Now()) || w.count() != 0 {
				t.Errorf("after %v it is %v, leased by %q, maybe sent %t, due at %v, %d sends", waited, rec.State, rec.LeaseOwner, rec.MaybeSent, rec.NextAttempt, w.count())
			}
		})
	}
}
