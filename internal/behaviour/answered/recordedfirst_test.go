package answered_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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

// TestRecordedFirst: an answer that the same key might not find again is recorded before anybody gets it, and so is one that
// nobody waits for, and one while too many are being recorded.
func TestRecordedFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		w      *wiretest.Wire
		change func(*oncehttp.Config)
		call   func(*testing.T, *oncehttp.Client) error
	}{
		"a 4xx that is not stored": {w: &wiretest.Wire{Replies: []wiretest.Reply{{Status: 422}}}, change: func(cfg *oncehttp.Config) { cfg.Profile = profile.Draft07() }},
		"an API without keys":      {w: wiretest.Paid(), change: func(cfg *oncehttp.Config) { cfg.Profile = profile.None() }},
		"the end of the window": {w: &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 9*time.Hour + 10*time.Minute}}}, change: func(cfg *oncehttp.Config) {
			p := profile.Draft07()
			p.Window.Floor = 10 * time.Hour
			cfg.Profile, cfg.Retry.AttemptTimeout = p, 9*time.Hour+30*time.Minute
		}},
		"Resume": {w: wiretest.Paid(), call: func(t *testing.T, c *oncehttp.Client) error {
			if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
				return err
			}
			for _, err := range c.Resume(t.Context()) {
				return err
			}
			return errors.New("nothing was resumed")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}
				client, _ := clienttest.New(t, c.w, clienttest.On(j, func(cfg *oncehttp.Config) {
					if c.change != nil {
						c.change(cfg)
					}
				}))
				if c.call == nil {
					c.call = func(t *testing.T, client *oncehttp.Client) error {
						_, err := client.DoKey(clienttest.Post(t, "{}"), "k")
						return err
					}
				}
				if err := c.call(t, client); err != nil {
					t.Fatal(err)
				}
				if rec := standing(t, j, "k"); rec.State != persist.StateConfirmed || j.Ends.Load() != 0 {
					t.Errorf("it is %v, with %d late ends; want confirmed, and none", rec.State, j.Ends.Load())
				}
			})
		})
	}
}

// TestAnswersOutAreBounded: no more than 256 answers are out whose records are not written.
func TestAnswersOutAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}
		c, _ := clienttest.New(t, wiretest.Paid(), clienttest.On(j))
		for i := range 300 {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // the writing begins after Do returned
		if n := j.Ends.Load(); n != 256 {
			t.Errorf("%d answers are out; want 256", n)
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		for rec := range j.List(t.Context(), persist.Query{AllAccounts: true, States: []persist.State{persist.StatePending}}) {
			t.Errorf("%q is pending", rec.Key)
		}
	})
}

// passedBy embeds a journal that finishes late, and has a Finish of its own.
type passedBy struct {
	*journaltest.Recording
	finished atomic.Int32
}

func (a *passedBy) Finish(ctx context.Context, rec persist.Record) error {
	a.finished.Add(1)
	return a.Recording.Finish(ctx, rec)
}

// TestWrapperIsNotPassedBy: a type that embeds a journal and has a Finish of its own sees every end.
func TestWrapperIsNotPassedBy(t *testing.T) {
	t.Parallel()
	j := &passedBy{Recording: &journaltest.Recording{Journal: memory.New()}}
	c, _ := clienttest.New(t, wiretest.Paid(), clienttest.On(j))
	if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || j.finished.Load() != 1 || j.Ends.Load() != 0 {
		t.Errorf("%v; %d ends by the type itself, %d past it; want 1 and 0", err, j.finished.Load(), j.Ends.Load())
	}
}
