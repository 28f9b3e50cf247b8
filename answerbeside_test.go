package oncehttp_test

import (
	"context"
	"errors"
	"runtime"
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

// TestOtherBytesAfterTheAnswer: an Enqueue of other bytes is told that the operation which has the key took place.
func TestOtherBytesAfterTheAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, _, _ := answered(t)
		err := c.Enqueue(post(t, `{"other":1}`), "k")
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrFinal) || !errors.Is(err, oncehttp.ErrKeyReused) {
			t.Errorf("%v; want ErrFinal", err)
		}
		var e *oncehttp.Error
		if errors.As(err, &e) && e.State != persist.StateConfirmed {
			t.Errorf("the state is %v", e.State)
		}
	})
}

// TestRekeyToAnAnsweredKey: a Rekey to the key of an operation whose record is written a moment later says how that ended.
func TestRekeyToAnAnsweredKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := &recording{Journal: memory.New(), takes: time.Minute}
		c, _ := newClient(t, &wire{replies: paid.replies}, on(j))
		if err := c.Enqueue(post(t, "{}"), "old"); err != nil {
			t.Fatal(err)
		}
		if err := absentAsSeen(c, t.Context(), "old"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.DoKey(post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		err := rekeyAsSeen(c, t.Context(), "old", "k", "a test")
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrKeyReused) || e.State != persist.StateConfirmed {
			t.Errorf("%v, %+v; want the state confirmed", err, e)
		}
	})
}

// TestObserveCrashesBeforeTheRecord: an answer is recorded although Config.Observe panics, or ends its goroutine, when it is told.
func TestObserveCrashesBeforeTheRecord(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(){"panics": func() { panic("a nil map") }, "exits": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				j, w := &recording{Journal: memory.New(), takes: time.Minute}, &wire{replies: paid.replies}
				c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) {
					cfg.Observe = func(_ context.Context, e oncehttp.Event) {
						if e.Kind == oncehttp.EventFinished {
							crash()
						}
					}
				}))
				var err error
				caught := func() (v any) {
					defer func() { v = recover() }()
					_, err = c.DoKey(post(t, "{}"), "k")
					return nil
				}()
				if (caught == nil) == (err == nil) {
					t.Errorf("%v, %v", caught, err)
				}
				if rec := lookup(t, c, "k"); rec.State != persist.StateConfirmed || oncehttp.Running(c) != 0 {
					t.Errorf("it is %v, %d calls have a place; want confirmed and none", rec.State, oncehttp.Running(c))
				}
			})
		})
	}
}
