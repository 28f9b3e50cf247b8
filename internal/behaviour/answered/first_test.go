// Package answered_test holds the promises for an answer that is given before its record is written: every other call waits for
// the record.
package answered_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
)

// answered is a client of which a Do with the key k has returned, and whose record says so in a minute.
func answered(t *testing.T) (*oncehttp.Client, *journaltest.Recording, *wiretest.Wire) {
	t.Helper()
	j, w := &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}, wiretest.Paid()
	c, _ := clienttest.New(t, w, clienttest.On(j))
	began := time.Now()
	resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
	if err != nil || resp.StatusCode != 201 || clienttest.Read(t, resp) != `{"id":"pay_1"}` {
		t.Fatalf("%v, %v", resp, err)
	}
	if took := time.Since(began); took > 0 {
		t.Fatalf("Do took %v, want 0", took)
	}
	if rec := standing(t, j, "k"); rec.State != persist.StatePending || !rec.MaybeSent {
		t.Fatalf("the record is %v, maybe sent %t; want pending and true", rec.State, rec.MaybeSent)
	}
	return c, j, w
}

// standing is what the journal has of a key.
func standing(t *testing.T, j persist.Journal, key string) (found persist.Record) {
	t.Helper()
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true, Key: key}) {
		if err != nil {
			t.Fatal(err)
		}
		found = rec
	}
	return found
}

// TestCallsAfterTheAnswer: a Do returns before its record is written, and every call that looks at the operation then waits for
// that, so that none says "pending" of what was answered, and nothing is sent again.
func TestCallsAfterTheAnswer(t *testing.T) {
	t.Parallel()
	happened := oncehttp.Resolution{Effect: oncehttp.EffectHappened}
	for name, call := range map[string]func(*testing.T, *oncehttp.Client) error{
		"Lookup": func(t *testing.T, c *oncehttp.Client) error {
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || rec.Sends != 1 {
				return fmt.Errorf("it is %v after %d sends", rec.State, rec.Sends)
			}
			return nil
		},
		"Unfinished": func(t *testing.T, c *oncehttp.Client) error {
			for rec, err := range c.Unfinished(t.Context()) {
				return fmt.Errorf("it lists %q, %w", rec.Key, err)
			}
			return nil
		},
		"Flush": func(t *testing.T, c *oncehttp.Client) error { return c.Flush(t.Context()) },
		"Do": func(t *testing.T, c *oncehttp.Client) error {
			resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if err != nil {
				return err
			}
			if how := oncehttp.ResultOf(resp); how.Source != oncehttp.SourceJournal || clienttest.Read(t, resp) != `{"id":"pay_1"}` {
				return fmt.Errorf("its answer is from %v", how.Source)
			}
			return nil
		},
		"Do of another request": func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.DoKey(clienttest.Post(t, `{"other":1}`), "k")
			return not(err, oncehttp.ErrKeyReused, oncehttp.ErrInFlight)
		},
		"Do of a request that is too large": func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.DoKey(clienttest.Post(t, strings.Repeat("1", 20<<20)), "k")
			return not(err, oncehttp.ErrFinal, oncehttp.ErrInFlight)
		},
		"Settle": func(t *testing.T, c *oncehttp.Client) error {
			return not(c.Settle(t.Context(), "k", happened), oncehttp.ErrFinal, oncehttp.ErrInFlight)
		},
		"Abandon": func(t *testing.T, c *oncehttp.Client) error {
			return not(c.Abandon(t.Context(), "k"), oncehttp.ErrFinal, oncehttp.ErrInFlight)
		},
		"Rekey": func(t *testing.T, c *oncehttp.Client) error {
			return not(clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", "a test"), oncehttp.ErrFinal, oncehttp.ErrInFlight)
		},
		"Close": func(_ *testing.T, c *oncehttp.Client) error { return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, j, w := answered(t)
				began := time.Now()
				if err := call(t, c); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != j.Takes {
					t.Errorf("it took %v; want %v", took, j.Takes)
				}
				if rec := standing(t, j, "k"); rec.State != persist.StateConfirmed || w.Count() != 1 {
					t.Errorf("the record is %v, %d sends; want confirmed and 1", rec.State, w.Count())
				}
				next, _ := clienttest.New(t, w, clienttest.On(j))
				clienttest.Free(t, next, "k")
			})
		})
	}
}

// not says what is wrong with an error that has to match one sentinel, and not another.
func not(err, is, isNot error) error {
	if !errors.Is(err, is) || errors.Is(err, isNot) {
		return fmt.Errorf("%w; it must match %w, and not %w", err, is, isNot)
	}
	return nil
}

// TestCallsLeaveAfterTheAnswer: those that wait for the record return when their context ends.
func TestCallsLeaveAfterTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := answered(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := c.Lookup(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lookup: %v", err)
		}
		if err := c.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush: %v", err)
		}
		for _, err := range c.Unfinished(ctx) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Unfinished: %v", err)
			}
		}
		_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrInFlight) {
			t.Errorf("Do: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("they took %v; want 1s", took)
		}
	})
}

// TestPassesAfterTheAnswer: Resume and Run send nothing of an operation whose answer is out, and yield nothing of it; also where
// the pass begins before the record is written, and with another client on the journal.
func TestPassesAfterTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, j, w := answered(t)
		other, _ := clienttest.New(t, w, clienttest.On(j))
		stop := clienttest.Run(t, other)
		for r, err := range other.Resume(t.Context()) {
			t.Errorf("%v, %v", r, err)
		}
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil || w.Count() != 1 || clienttest.Lookup(t, c, "k").State != persist.StateConfirmed {
			t.Errorf("%v; %d sends; the record is %v", err, w.Count(), clienttest.Lookup(t, c, "k").State)
		}
	})
}

// TestAnswerThatIsNotRecorded: the caller has its answer; that the journal did not take it is logged, and the same key asks the
// server, which has the answer.
func TestAnswerThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		j := &journaltest.Recording{Journal: memory.New(), Fails: errors.New("the disk is full")}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "1"}, {Status: 201, Body: "1", Header: "Idempotent-Replayed: true"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) }))
		if resp, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || clienttest.Read(t, resp) != "1" {
			t.Fatal(err)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending || !strings.Contains(log.String(), "the disk is full") {
			t.Errorf("it is %v; logged: %s", rec.State, log.String())
		}
		j.Fails = nil
		if resp, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || clienttest.Read(t, resp) != "1" || w.Count() != 2 || len(w.Keys()) != 1 {
			t.Errorf("%v; %d sends with %d keys, want 2 with 1", err, w.Count(), len(w.Keys()))
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed {
			t.Errorf("it is %v", rec.State)
		}
	})
}

// TestEnqueueAfterTheAnswer: a mark that comes while the record is being written stays, and the end is written once more.
func TestEnqueueAfterTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, j, w := answered(t)
		if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || !rec.Enqueued || w.Count() != 1 || j.Ends.Load() != 2 {
			t.Errorf("it is %v, enqueued %t, %d sends, %d tries; want confirmed, true, 1 and 2", rec.State, rec.Enqueued, w.Count(), j.Ends.Load())
		}
	})
}

// TestEveryCallerIsAnsweredFirst: whoever joined a call gets the answer at the same moment as who began it, and the event that
// the operation is finished comes before. A context that ends afterwards does not end the writing.
func TestEveryCallerIsAnsweredFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var finished atomic.Int32
		j, w := &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "1", Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventFinished {
					finished.Add(1)
				}
			}
		}))
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 3)
		for range cap(done) {
			go func() {
				resp, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
				switch {
				case err == nil && clienttest.Read(t, resp) != "1":
					err = errors.New("another answer")
				case err == nil && finished.Load() != 1:
					err = fmt.Errorf("%d events", finished.Load())
				}
				done <- err
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != time.Second || w.Count() != 1 {
			t.Errorf("%v, %d sends; want 1s and 1", took, w.Count())
		}
		cancel()
		synctest.Wait()
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || finished.Load() != 1 {
			t.Errorf("it is %v, %d events; want confirmed and 1", rec.State, finished.Load())
		}
	})
}

// TestLargeAnswerFirst: the caller reads the rest of a large answer while the record is written.
func TestLargeAnswerFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 4096)
		j, w := &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: large}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 1024 }))
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		synctest.Wait() // the writing begins after Do returned
		if err != nil || j.Ends.Load() != 1 || clienttest.Read(t, resp) != large {
			t.Fatalf("%v, %d ends", err, j.Ends.Load())
		}
		resp.Header.Set("Changed", "by the caller")
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || !rec.Answer.BodyDropped || rec.Answer.Header.Get("Changed") != "" {
			t.Errorf("it is %v, %+v", rec.State, rec.Answer)
		}
	})
}
