package oncehttp_test

import (
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
		cfg.Limiter = func(string) oncehttp.Limiter { return limit }
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

// TestOwnClaimIsGivenBack: where Run ends meanwhile, the operation is free at once, and as it was.
func TestOwnClaimIsGivenBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{}
		_, c, stop := waiting(t, w)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if rec := lookup(t, c, "k"); rec.LeaseOwner != "" || rec.MaybeSent || rec.State != persist.StatePending || w.count() != 0 {
			t.Errorf("it is %v, leased by %q, maybe sent %t, %d sends", rec.State, rec.LeaseOwner, rec.MaybeSent, w.count())
		}
	})
}
