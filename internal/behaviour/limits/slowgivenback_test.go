package limits_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

// unshared is a journal of one process, as a file is: it has no leases. Its listing may be of a moment before, and a write may fail.
type unshared struct {
	persist.Journal
	listed  []persist.Record // in place of a listing
	updates func(rec persist.Record) error
}

func (j *unshared) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if j.listed == nil || len(q.States) == 0 {
		return j.Journal.List(ctx, q)
	}
	return func(yield func(persist.Record, error) bool) {
		for _, rec := range j.listed {
			if !yield(rec.Clone(), nil) {
				return
			}
		}
	}
}

func (j *unshared) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	updated, err := j.Journal.Update(ctx, rec)
	if j.updates != nil && err == nil {
		err = j.updates(rec)
	}
	return updated, err
}

// slowNow is a limiter that lets nothing go out while slow is set.
type slowNow struct{ slow atomic.Bool }

func (l *slowNow) Wait(ctx context.Context) error {
	if !l.slow.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestGivenBackAsRead: a pass gives an operation back as the journal had it when its drive began, not as it was listed: it may have been sent in
// between.
func TestGivenBackAsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, limiter := &unshared{Journal: memory.New()}, &slowNow{}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: "{}"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, clienttest.LimitedBy(limiter)))
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
		before := clienttest.Lookup(t, c, "k")
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		sent := clienttest.Lookup(t, c, "k")
		j.listed = []persist.Record{before}
		limiter.slow.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		for range c.Resume(ctx) {
		}
		j.listed = nil
		if rec := clienttest.Lookup(t, c, "k"); !rec.MaybeSent || !rec.FirstSent.Equal(sent.FirstSent) || w.Count() != 1 {
			t.Errorf("maybe sent %t, first at %v, %d sends; want that it may have been sent, first at %v, and 1 send", rec.MaybeSent, rec.FirstSent, w.Count(), sent.FirstSent)
		}
	})
}

// TestGivenBackUncertainly: where it is not certain that the journal has an operation as never sent, its call sends nothing.
func TestGivenBackUncertainly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, limiter := &unshared{Journal: memory.New()}, &clienttest.Bucket{Period: 2 * time.Minute}
		j.updates = func(rec persist.Record) error {
			if rec.MaybeSent {
				return nil
			}
			return fmt.Errorf("the sync failed: %w", persist.ErrUncertain)
		}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(limiter)))
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 0 {
			t.Errorf("%v after %d sends, want ErrOutcomeUnknown and none", err, w.Count())
		}
	})
}

// TestGivenBackHeld: what is held for a caller of plain HTTP stays held while a call with its key waits for its limiter: no pass sends it.
func TestGivenBackHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, limiter := memory.New(), &slowNow{}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: "{}"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, clienttest.LimitedBy(limiter)))
		if _, err := clienttest.SDK(t, c, "k"); err == nil {
			t.Fatal("no error for a lost answer")
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.HoldReason != persist.HoldCaller {
			t.Fatalf("%v %q, want it held for its caller", rec.State, rec.HoldReason)
		}
		limiter.slow.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		req, done := clienttest.Post(t, "{}").WithContext(ctx), make(chan error)
		go func() {
			_, err := c.DoKey(req, "k")
			done <- err
		}()
		time.Sleep(time.Minute)
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldCaller {
			t.Errorf("%v %q while the call waits, want it held for its caller", rec.State, rec.HoldReason)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that its context has ended", err)
		}
	})
}

// refusing is a journal whose Update fails for certain, once, where an operation is given back.
type refusing struct {
	persist.Journal
	refused atomic.Bool
}

func (j *refusing) Unwrap() persist.Journal { return j.Journal }

func (j *refusing) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if !rec.MaybeSent && j.refused.CompareAndSwap(false, true) {
		return persist.Record{}, errors.New("connection refused")
	}
	return j.Journal.Update(ctx, rec)
}

// TestNotGivenBackIsSent: where the journal refuses the write that gives an operation back, the call keeps the operation, with its lease, and sends it
// when its turn comes.
func TestNotGivenBackIsSent(t *testing.T) {
	t.Parallel()
	journaltest.Two(t, func(t *testing.T, one, _ persist.Journal) {
		j, limiter := &refusing{Journal: one}, &clienttest.Bucket{Period: 2 * time.Minute}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(limiter)))
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if err != nil || resp.StatusCode != 201 || w.Count() != 1 || limiter.Count() != 1 || !j.refused.Load() {
			t.Errorf("%v after %d sends, %d waits, refused %t; want 201 of one send", err, w.Count(), limiter.Count(), j.refused.Load())
		}
	})
}

// TestNotGivenBackLeavesNoWait: if such a call ends before its turn, nothing of it goes on to wait for the limiter.
func TestNotGivenBackLeavesNoWait(t *testing.T) {
	t.Parallel()
	journaltest.Two(t, func(t *testing.T, one, _ persist.Journal) {
		j, limiter := &refusing{Journal: one}, &slowNow{}
		limiter.slow.Store(true)
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(limiter)))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
		if !errors.Is(err, context.DeadlineExceeded) || w.Count() != 0 {
			t.Errorf("%v after %d sends, want the end of the context and none", err, w.Count())
		}
		time.Sleep(time.Hour)
		clienttest.Must(t, c.Close())
	})
}
