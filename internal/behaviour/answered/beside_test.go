package answered_test

import (
	"context"
	"errors"
	"runtime"
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

// TestDoLeavesWhileItWaitsForTheRecord: a Do whose context ends while it waits for the record of the call before returns then.
func TestDoLeavesWhileItWaitsForTheRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := answered(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
		clienttest.ExactlyOne(t, err)
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
			synctest.Test(t, func(t *testing.T) {
				w := wiretest.Paid()
				c, _ := clienttest.New(t, w, clienttest.On(&journaltest.Recording{Journal: memory.New(), Takes: time.Minute, Fails: fails}))
				if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() {
					_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					done <- err
				}()
				synctest.Wait()
				if err := c.Close(); err != nil || w.Count() != 1 {
					t.Errorf("%v, %d sends, want 1", err, w.Count())
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
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := answered(t)
		err := c.Enqueue(clienttest.Post(t, `{"other":1}`), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrFinal) || !errors.Is(err, oncehttp.ErrKeyReused) {
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
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}
		c, _ := clienttest.New(t, wiretest.Paid(), clienttest.On(j))
		if err := c.Enqueue(clienttest.Post(t, "{}"), "old"); err != nil {
			t.Fatal(err)
		}
		if err := clienttest.AbsentAsSeen(c, t.Context(), "old"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		err := clienttest.RekeyAsSeen(c, t.Context(), "old", "k", "a test")
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
			synctest.Test(t, func(t *testing.T) {
				j, w := &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}, wiretest.Paid()
				c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
					cfg.Observe = func(_ context.Context, e oncehttp.Event) {
						if e.Kind == oncehttp.EventFinished {
							crash()
						}
					}
				}))
				var err error
				caught := func() (v any) {
					defer func() { v = recover() }()
					_, err = c.DoKey(clienttest.Post(t, "{}"), "k")
					return nil
				}()
				if (caught == nil) == (err == nil) {
					t.Errorf("%v, %v", caught, err)
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed {
					t.Errorf("it is %v, want confirmed", rec.State)
				}
				clienttest.Free(t, c, "k")
			})
		})
	}
}
