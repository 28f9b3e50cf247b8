package guests_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// ended is a journal of a user's own: it does something in its first look for ended operations.
type ended struct {
	*memory.Journal
	asked atomic.Bool
	ask   func()
}

func (j *ended) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if slices.Contains(q.States, persist.StateConfirmed) && j.ask != nil && !j.asked.Swap(true) {
		j.ask()
	}
	return j.Journal.List(ctx, q)
}

// TestFoundAsks: Config.Reconcile finds the answers of held operations. A function of the user in the middle of that goes through the held
// operations itself, without the context: KeepHeader, asked about a header of the first one, or the List of a journal. Both passes end, and
// every operation is settled, unless both have found one object. (Invariant 39.)
func TestFoundAsks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		ids     string
		inList  bool
		settled int
	}{
		{"KeepHeader", `{}`, false, 2},
		{"List, other objects", `{"id":"ch_%s"}`, true, 2},
		{"List, one object", `{"id":"ch_1"}`, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := &ended{Journal: memory.New()}
				var c *oncehttp.Client
				pass := func() {
					for range c.Resume(context.Background()) {
					}
				}
				var on, asked atomic.Bool
				c, _ = clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, func(cfg *oncehttp.Config) {
					cfg.ResumeWorkers = 1
					cfg.Reconcile = func(_ context.Context, rec persist.Record) (oncehttp.Resolution, error) {
						body := test.ids
						if body == `{"id":"ch_%s"}` {
							body = fmt.Sprintf(body, rec.Key)
						}
						return oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 201, Header: http.Header{"X-Session-Token": {"a"}}, Body: []byte(body)}}, nil
					}
					cfg.KeepHeader = func(string) bool {
						if on.Load() && !test.inList && !asked.Swap(true) {
							pass()
						}
						return false
					}
				}))
				clienttest.HoldAt(t, c, j, "api.example.com", 2)
				if on.Store(true); test.inList {
					j.ask = pass
				}
				pass()
				if n := settledIn(t, j); n != test.settled {
					t.Errorf("%d operations are settled; want %d", n, test.settled)
				}
			})
		})
	}
}

// TestFoundHangs: a List of a user's journal hangs while one held operation is settled by what Config.Reconcile found. Another pass settles the
// other operation meanwhile. (Invariant 39.)
func TestFoundHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOn, hangs := make(chan struct{}), make(chan struct{})
		j := &ended{Journal: memory.New()}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.ResumeWorkers = 1
			cfg.Reconcile = func(_ context.Context, rec persist.Record) (oncehttp.Resolution, error) {
				return oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 201, Body: []byte(`{"id":"ch_` + rec.Key + `"}`)}}, nil
			}
		}))
		clienttest.HoldAt(t, c, j, "api.example.com", 2)
		j.ask = func() { close(hangs); <-goOn }
		over := make(chan struct{})
		go func() {
			defer close(over)
			for range c.Resume(context.Background()) {
			}
		}()
		<-hangs
		for range c.Resume(context.Background()) {
		}
		if n := settledIn(t, j); n != 1 {
			t.Errorf("%d operations are settled beside a hanging List; want 1", n)
		}
		close(goOn)
		<-over
		if n := settledIn(t, j); n != 2 {
			t.Errorf("%d operations are settled in the end; want 2", n)
		}
	})
}

// settledIn returns the number of settled operations in a journal.
func settledIn(t *testing.T, j persist.Journal) (n int) {
	t.Helper()
	for _, err := range j.List(t.Context(), persist.Query{AllAccounts: true, States: []persist.State{persist.StateSettled}}) {
		clienttest.Must(t, err)
		n++
	}
	return n
}
