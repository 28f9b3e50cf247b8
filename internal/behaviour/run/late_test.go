package run_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// slowList is a journal whose listings take a while before they begin.
type slowList struct {
	persist.Journal
	took time.Duration
}

func (j slowList) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	time.Sleep(j.took)
	return j.Journal.List(ctx, q)
}

// slowIndexed is a slowList that shows the journal's index of due times.
type slowIndexed struct{ slowList }

func (j slowIndexed) Unwrap() persist.Journal { return j.Journal }

// TestRunDueMeanwhile: what falls due while a pass is under way is sent by the next one, which comes at once, whether the
// journal has an index of due times or not.
func TestRunDueMeanwhile(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		const took = 2 * time.Second
		slow := slowList{j, took}
		for _, j := range []persist.Journal{slow, slowIndexed{slow}} {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.On(j))
			rec, err := c.Prepare(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprintf("%T", j)))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			rec.NextAttempt = start.Add(took / 2)
			if _, _, err := j.Begin(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			stop := clienttest.Run(t, c)
			time.Sleep(10 * time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
			if w.Count() != 1 {
				t.Fatalf("%T: %d sends, want 1", j, w.Count())
			}
			if late := w.Sends[0].At.Sub(rec.NextAttempt); late > 3*took {
				t.Errorf("%T: sent %v after it fell due", j, late)
			}
		}
	})
}

// TestRunBesideCall: an operation that a caller has under way looks as one that is due, and does not hide what falls due
// after it at the same origin.
func TestRunBesideCall(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 50 * time.Second}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout = time.Minute }))
		start := time.Now()
		called := make(chan error, 1)
		go func() {
			_, err := c.DoKey(clienttest.Post(t, "{}"), "call")
			called <- err
		}()
		synctest.Wait()
		rec, err := c.Prepare(clienttest.Post(t, "{}"), "later")
		if err != nil {
			t.Fatal(err)
		}
		rec.NextAttempt = start.Add(5 * time.Second)
		if _, _, err := j.Begin(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		stop := clienttest.Run(t, c)
		time.Sleep(5 * time.Minute)
		if err := errors.Join(<-called, stop()); err != nil {
			t.Error(err)
		}
		if w.Count() != 2 || w.Sends[1].At.Sub(start) != 5*time.Second {
			t.Errorf("sends %+v, want the second at 5 s", w.Sends)
		}
	})
}
