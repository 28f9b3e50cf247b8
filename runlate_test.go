package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
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
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		const took = 2 * time.Second
		slow := slowList{j, took}
		for _, j := range []persist.Journal{slow, slowIndexed{slow}} {
			w := &wire{replies: []reply{{status: 201}}}
			c, _ := newClient(t, w, on(j))
			rec, err := c.Prepare(post(t, "{}"), oncehttp.Key(fmt.Sprintf("%T", j)))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			rec.NextAttempt = start.Add(took / 2)
			if _, _, err := j.Begin(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			stop := running(t, c)
			time.Sleep(10 * time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
			if w.count() != 1 {
				t.Fatalf("%T: %d sends, want 1", j, w.count())
			}
			if late := w.sends[0].at.Sub(rec.NextAttempt); late > 3*took {
				t.Errorf("%T: sent %v after it fell due", j, late)
			}
		}
	})
}

// TestRunBesideCall: an operation that a caller has under way looks as one that is due, and does not hide what falls due
// after it at the same origin.
func TestRunBesideCall(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201, delay: 50 * time.Second}, {status: 201}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout = time.Minute }))
		start := time.Now()
		called := make(chan error, 1)
		go func() {
			_, err := c.DoKey(post(t, "{}"), "call")
			called <- err
		}()
		synctest.Wait()
		rec, err := c.Prepare(post(t, "{}"), "later")
		if err != nil {
			t.Fatal(err)
		}
		rec.NextAttempt = start.Add(5 * time.Second)
		if _, _, err := j.Begin(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		stop := running(t, c)
		time.Sleep(5 * time.Minute)
		if err := errors.Join(<-called, stop()); err != nil {
			t.Error(err)
		}
		if w.count() != 2 || w.sends[1].at.Sub(start) != 5*time.Second {
			t.Errorf("sends %+v, want the second at 5 s", w.sends)
		}
	})
}
