// Package results_test tests the calls of Config.OnResult: one for each end and each new hold without a Do, until it returns nil.
package results_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// business is the receiver of results.
type business struct {
	mu    sync.Mutex
	got   []string    // key, state and status of each call, in their order
	at    []time.Time // of each
	fails int         // so many calls fail first
	once  func()      // called in the first call, if set
}

func (b *business) onResult(_ context.Context, rec persist.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	status := 0
	if rec.Answer != nil {
		status = rec.Answer.Status
	}
	b.got, b.at = append(b.got, fmt.Sprint(rec.Key, " ", rec.State, " ", status)), append(b.at, time.Now())
	if len(b.got) == 1 && b.once != nil {
		b.once()
	}
	if b.fails--; b.fails >= 0 {
		return errors.New("the database is away")
	}
	return nil
}

// want checks the calls so far.
func (b *business) want(t *testing.T, when string, want ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.got, want) {
		t.Errorf("%s: OnResult got %q; want %q", when, b.got, want)
	}
}

// client returns a client with OnResult on the journal.
func client(t *testing.T, j persist.Journal, b *business, replies ...wiretest.Reply) *oncehttp.Client {
	t.Helper()
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: replies}, clienttest.On(j, clienttest.Protected, func(cfg *oncehttp.Config) {
		if b != nil {
			cfg.OnResult = b.onResult
		}
	}))
	return c
}

// pass lets a Run of the client work for a while.
func pass(t *testing.T, c *oncehttp.Client, d time.Duration) {
	t.Helper()
	stop := clienttest.Start(t, c)
	time.Sleep(d)
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestEndOfRun: what Run ends is delivered, once.
func TestEndOfRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b business
		j := memory.New()
		c := client(t, j, &b, wiretest.Reply{Status: 201})
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
		pass(t, c, time.Hour)
		b.want(t, "after an hour", "k confirmed 201")
		if rec := clienttest.Lookup(t, c, "k"); !rec.Results || rec.Owed() {
			t.Errorf("Results %t, owed %t; want true and false", rec.Results, rec.Owed())
		}
	})
}

// TestOnResultCallsTheClient: OnResult may call the client, about its own operation, too: nothing waits for it.
func TestOnResultCallsTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c *oncehttp.Client
		calls := 0
		b := business{once: func() {
			began := time.Now()
			clienttest.Lookup(t, c, "k")
			clienttest.Do(t, c, clienttest.Post(t, "{}"), "k")
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
			clienttest.Must(t, c.Flush(t.Context()))
			if took := time.Since(began); took > time.Second {
				t.Errorf("the calls took %v", took)
			}
			calls++
		}}
		c = client(t, memory.New(), &b, wiretest.Reply{Status: 201})
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
		pass(t, c, time.Hour)
		if calls != 1 {
			t.Errorf("OnResult was called %d times to its end, want 1", calls)
		}
	})
}

// TestFailedDelivery: a result is delivered until OnResult returns nil, in pauses that grow up to MaxPause, also by another Run, and no
// Prune changes the record before.
func TestFailedDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := business{fails: 12}
		j := memory.New()
		c := client(t, j, &b, wiretest.Reply{Status: 201})
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
		pass(t, c, time.Minute)
		if n, err := c.Prune(t.Context(), oncehttp.Keeping{KeepAnswer: time.Second}); n != 0 || err != nil {
			t.Errorf("a Prune has changed %d, %v, of what is owed", n, err)
		}
		pass(t, c, 3*time.Hour)
		if len(b.got) != 13 {
			t.Fatalf("%d calls; want 12 that failed and one", len(b.got))
		}
		for i := 2; i < 12; i++ {
			before, pause := b.at[i-1].Sub(b.at[i-2]), b.at[i].Sub(b.at[i-1])
			if pause > 16*time.Minute || pause < before-time.Second {
				t.Errorf("the pause after call %d is %v, after %v", i, pause, before)
			}
		}
		if n, err := c.Prune(t.Context(), oncehttp.Keeping{KeepAnswer: time.Second}); n != 1 || err != nil {
			t.Errorf("a Prune has changed %d, %v, of what is delivered; want 1", n, err)
		}
	})
}

// TestEndsOfOthers: whoever ends the operation, a Run with OnResult delivers: a Resume and an operator without OnResult.
func TestEndsOfOthers(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *oncehttp.Client){
		"k confirmed 201": func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) },
		"k settled 0": func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: persist.EffectHappened}))
		},
		"k abandoned 0": func(t *testing.T, c *oncehttp.Client) { clienttest.Must(t, c.Abandon(t.Context(), "k")) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var b business
			j := memory.New()
			c := client(t, j, &b)
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
			end(t, client(t, j, nil, wiretest.Reply{Status: 201}))
			pass(t, client(t, j, nil), time.Hour)
			b.want(t, "after a Run without OnResult")
			pass(t, c, time.Second)
			b.want(t, "after one with it", name)
		})
	}
}

// TestHoldAndEnd: a new hold is delivered, and then its end; not the same hold again.
func TestHoldAndEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b business
		j := memory.New()
		c := client(t, j, &b, wiretest.Reply{Status: 302})
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
		pass(t, c, time.Hour)
		b.want(t, "held", "k held 302")
		clienttest.Must(t, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: persist.EffectHappened}))
		pass(t, c, time.Hour)
		b.want(t, "settled", "k held 302", "k settled 0")
	})
}

// TestChangedMeanwhile: what changes while OnResult has it is owed again, and the mark of the earlier state does not count for it.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b business
		j := memory.New()
		c, other := client(t, j, &b, wiretest.Reply{Status: 302}), client(t, j, nil)
		b.once = func() {
			clienttest.Must(t, other.Settle(context.Background(), "k", oncehttp.Resolution{Effect: persist.EffectHappened}))
		}
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
		pass(t, c, time.Hour)
		b.want(t, "settled in the call", "k held 302", "k settled 0")
	})
}

// unmarking is a journal that does not take the mark of a Do.
type unmarking struct {
	*memory.Journal
	fails int
}

func (u *unmarking) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	if u.fails--; u.fails >= 0 {
		return false, errors.New("no mark")
	}
	return u.Journal.MarkDelivered(ctx, id, revision)
}

// TestResultOfDo: OnResult does not get what a Do got. If the mark of that is lost, as with its process, OnResult gets it, a minute later.
func TestResultOfDo(t *testing.T) {
	t.Parallel()
	for fails, want := range map[int][]string{0: nil, 1: {"k confirmed 402"}} {
		synctest.Test(t, func(t *testing.T) {
			var b business
			c := client(t, &unmarking{memory.New(), fails}, &b, wiretest.Reply{Status: 402})
			stop := clienttest.Run(t, c)
			clienttest.Do(t, c, clienttest.Post(t, "{}"), "k")
			time.Sleep(59 * time.Second)
			b.want(t, "before the minute is over")
			time.Sleep(time.Hour)
			b.want(t, "after an hour", want...)
			_ = stop()
		})
	}
}

// plainJournal finds no results.
type plainJournal struct{ persist.Journal }

// TestJournalWithoutResults: New refuses OnResult where the journal does not find what is owed.
func TestJournalWithoutResults(t *testing.T) {
	t.Parallel()
	_, err := oncehttp.New(oncehttp.Config{Journal: plainJournal{memory.New()}, OnResult: new(business).onResult})
	if !errors.Is(err, oncehttp.ErrConfig) {
		t.Errorf("New: %v; want ErrConfig", err)
	}
}
