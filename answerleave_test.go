package oncehttp_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestDoLeavesWhileItWaitsForTheRecord: a Do whose context ends while it waits for the record of the call before returns then.
func TestDoLeavesWhileItWaitsForTheRecord(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, _, _ := answered(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.DoKey(post(t, "{}").WithContext(ctx), "k")
		exactlyOne(t, err)
		if took := time.Since(began); took != time.Second || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, oncehttp.ErrInFlight) {
			t.Errorf("%v after %v; want in flight after 1s", err, took)
		}
	})
}

// TestCloseWhileDoWaitsForTheRecord: Close waits for a Do that waits for the record of the call before. That has its answer from
// the journal, or nothing is sent any more and it says that the client is closed.
func TestCloseWhileDoWaitsForTheRecord(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]error{"written": nil, "uncertain": persist.ErrUncertain} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: paid.replies}
				c, _ := newClient(t, w, on(&recording{Journal: memory.New(), takes: time.Minute, fails: fails}))
				if _, err := c.DoKey(post(t, "{}"), "k"); err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() {
					_, err := c.DoKey(post(t, "{}"), "k")
					done <- err
				}()
				synctest.Wait()
				if err := c.Close(); err != nil || w.count() != 1 || oncehttp.Running(c) != 0 {
					t.Errorf("%v, %d sends, %d calls have a place; want 1 and 0", err, w.count(), oncehttp.Running(c))
				}
				if err := <-done; errors.Is(err, oncehttp.ErrClosed) == (fails == nil) || (err == nil) != (fails == nil) {
					t.Error(err)
				}
			})
		})
	}
}
