package lease_test

import (
	"context"
	"errors"
	"sync"
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
	"github.com/oncehttp/oncehttp/profile"
)

// outage is a journal that renews no lease for a while. The next claim that takes something takes effect, and its answer comes
// after a delay, or never.
type outage struct {
	*memory.Journal
	delay time.Duration
	never bool

	mu      sync.Mutex
	until   time.Time
	claimed bool
}

// outlasting is a time that is longer than a lease.
const outlasting = 45 * time.Second

// begin begins an outage.
func (o *outage) begin(length time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until, o.claimed = time.Now().Add(length), false
}

func (o *outage) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	o.mu.Lock()
	out := time.Now().Before(o.until)
	o.mu.Unlock()
	if out {
		return nil, time.Time{}, journaltest.ErrOutage
	}
	return o.Journal.Renew(ctx, owner, lease, ids)
}

func (o *outage) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	return o.cut(o.Journal.Claim(ctx, q, owner, lease, n))
}

func (o *outage) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	return o.cut(o.Journal.ClaimToSend(ctx, q, owner, lease, sending, n))
}

// cut is what is heard of the first claim that takes something.
func (o *outage) cut(claimed []persist.Record, now time.Time, err error) ([]persist.Record, time.Time, error) {
	o.mu.Lock()
	first := !o.claimed && len(claimed) > 0
	o.claimed = o.claimed || first
	o.mu.Unlock()
	if first {
		time.Sleep(o.delay)
		if o.never {
			return nil, time.Time{}, journaltest.ErrOutage
		}
	}
	return claimed, now, err
}

// taken checks that what runs was claimed, as these tests are about.
func (o *outage) taken(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.claimed {
		t.Error("it was not claimed")
	}
}

func resuming(ctx context.Context, c *oncehttp.Client) {
	for range c.Resume(ctx) {
	}
}

// TestOwnClaim: where the journal was out of reach for longer than a lease, the Run of a client claims what its own Do is running.
// That goes on with the claim, and records its answer, also where the answer to the claim comes late or not at all.
func TestOwnClaim(t *testing.T) {
	t.Parallel()
	passes := map[string]func(context.Context, *oncehttp.Client){
		"Run":    func(ctx context.Context, c *oncehttp.Client) { _ = c.Run(ctx) },
		"Resume": func(ctx context.Context, c *oncehttp.Client) { time.Sleep(45 * time.Second); resuming(ctx, c) },
	}
	for name, pass := range passes {
		for answer, o := range map[string]*outage{
			"at once": {}, "after Do": {delay: 2 * time.Minute}, "before Do ends": {delay: time.Minute}, "never": {never: true},
		} {
			for _, prof := range []*profile.Profile{profile.Draft07(), profile.None()} {
				t.Run(name+", "+answer+", "+prof.Name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						o := &outage{Journal: memory.New(), delay: o.delay, never: o.never}
						o.begin(outlasting)
						w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 2 * time.Minute}, {Status: 500}}}
						c, _ := clienttest.New(t, w, clienttest.On(o, slowAnswers, func(cfg *oncehttp.Config) { cfg.Profile = prof }))
						ctx, stop := context.WithCancel(t.Context())
						ended := make(chan bool)
						go func() { pass(ctx, c); close(ended) }()
						if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
							t.Error(err)
						}
						if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed {
							t.Errorf("it is %v at revision %d", rec.State, rec.Revision)
						}
						o.taken(t)
						time.Sleep(10 * time.Minute)
						stop()
						if <-ended; w.Count() != 1 {
							t.Errorf("%d sends, want 1", w.Count())
						}
					})
				})
			}
		}
	}
}

// TestOwnClaims: of several outages while one answer is awaited.
func TestOwnClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{Journal: memory.New()}
		o.begin(outlasting)
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 4 * time.Minute}, {Status: 500}}}
		c, _ := clienttest.New(t, w, clienttest.On(o, slowAnswers, func(cfg *oncehttp.Config) { cfg.Profile = profile.None() }))
		stop := clienttest.Run(t, c)
		time.AfterFunc(2*time.Minute, func() { o.taken(t); o.begin(outlasting) })
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		if o.taken(t); clienttest.Lookup(t, c, "k").State != persist.StateConfirmed {
			t.Errorf("it is %v", clienttest.Lookup(t, c, "k").State)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestOwnClaimBeforeSend: an operation that waits for its token, or for another attempt, is sent under the lease that the claim gave.
func TestOwnClaimBeforeSend(t *testing.T) {
	t.Parallel()
	token := func(cfg *oncehttp.Config) {
		cfg.Profile = servertest.Ticketed()
		cfg.Profile.Token = &profile.Token{}
		cfg.Token = func(context.Context, persist.Record) (string, error) {
			time.Sleep(time.Minute)
			return "t1", nil
		}
	}
	again := wiretest.Reply{Status: 503, Delay: time.Minute}
	for _, c := range []struct {
		change  func(*oncehttp.Config)
		replies []wiretest.Reply
	}{{token, replies(accepted(4 * time.Minute))}, {slowAnswers, []wiretest.Reply{again, accepted(4 * time.Minute)}}} {
		synctest.Test(t, func(t *testing.T) {
			o := &outage{Journal: memory.New()}
			o.begin(outlasting)
			w := &wiretest.Wire{Replies: c.replies}
			c, _ := clienttest.New(t, w, clienttest.On(o, slowAnswers, c.change))
			stop := clienttest.Run(t, c)
			time.AfterFunc(2*time.Minute, func() { o.taken(t); o.begin(outlasting) })
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || w.Count() != len(w.Replies) {
				t.Errorf("it is %v after %d sends, want %d", rec.State, w.Count(), len(w.Replies))
			}
			o.taken(t)
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOwnClaimOfEnqueued: also where an Enqueue has marked the operation meanwhile, here or in another process.
func TestOwnClaimOfEnqueued(t *testing.T) {
	t.Parallel()
	for _, here := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := &outage{Journal: memory.New()}
			o.begin(outlasting + 10*time.Second) // Enqueue lengthens the lease
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Delay: time.Minute}, {Status: 201, Delay: time.Minute}, {Status: 500}}}
			c, _ := clienttest.New(t, w, clienttest.On(o, slowAnswers))
			who := c
			if !here {
				who, _ = clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(o.Journal)))
			}
			stop := clienttest.Run(t, c)
			time.AfterFunc(time.Second, func() {
				if err := who.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
					t.Error(err)
				}
			})
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Error(err)
			}
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || !rec.Enqueued {
				t.Errorf("it is %v, enqueued %t", rec.State, rec.Enqueued)
			}
			o.taken(t)
			time.Sleep(10 * time.Minute)
			if err := stop(); err != nil || w.Count() != 2 {
				t.Errorf("%v, %d sends, want 2", err, w.Count())
			}
		})
	}
}

// TestOwnClaimAfterAnother: where another process has had the operation in between, the run that was under way sends it no more.
func TestOwnClaimAfterAnother(t *testing.T) {
	t.Parallel()
	for _, gives := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := &outage{Journal: memory.New()}
			o.begin(outlasting)
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Refused: true, Delay: time.Minute}, {Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.On(o, slowAnswers, func(cfg *oncehttp.Config) { cfg.Profile = profile.None() }))
			done := make(chan error)
			go func() { _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); done <- err }()
			time.Sleep(31 * time.Second)
			claimed, _, err := o.Journal.Claim(t.Context(), persist.Query{AllAccounts: true}, "another", 3*time.Second, 1)
			if err != nil || len(claimed) != 1 {
				t.Fatalf("another process claimed %d, error %v", len(claimed), err)
			}
			if gives { // after it has sent it, in the worst case
				claimed[0].LeaseOwner = ""
				if _, err := o.Update(t.Context(), claimed[0]); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(4 * time.Second)
			stop := clienttest.Run(t, c)
			err = <-done
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 1 {
				t.Errorf("%v after %d sends, want ErrOutcomeUnknown and 1", err, w.Count())
			}
			o.taken(t)
			time.Sleep(10 * time.Minute)
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateHeld || w.Count() != 1 {
				t.Errorf("later it is %v after %d sends; want held, since it may have been sent", rec.State, w.Count())
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
