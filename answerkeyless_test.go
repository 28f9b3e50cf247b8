package oncehttp_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// listsSlowly is a recording whose List reads at once, and takes its time to give what it has read.
type listsSlowly struct {
	*recording
	takes time.Duration
}

func (s *listsSlowly) FinishesLate() persist.Journal { return s }

func (s *listsSlowly) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		var records []persist.Record
		for rec, err := range s.recording.List(ctx, q) {
			if err != nil {
				yield(rec, err)
				return
			}
			records = append(records, rec)
		}
		time.Sleep(s.takes)
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// TestKeylessWhileTheRecordIsWritten: a request without a key, whose look at the journal saw the first operation just before its
// record was written, is an operation of its own: the caller of the first knows how that ended.
func TestKeylessWhileTheRecordIsWritten(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := &listsSlowly{recording: &recording{Journal: memory.New(), takes: time.Minute}, takes: 40 * time.Second}
		w := &wire{replies: paid.replies}
		c, _ := newClient(t, w, on(j))
		for range 2 {
			if _, err := c.Do(post(t, "{}")); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.keys()) != 2 {
			t.Errorf("%d keys; want 2", len(w.keys()))
		}
	})
}

// TestKeylessBesideTheSameKey: so it is while another caller waits with the first operation's key for its record.
func TestKeylessBesideTheSameKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j, w := &recording{Journal: memory.New(), takes: time.Minute}, &wire{replies: paid.replies}
		c, _ := newClient(t, w, on(j))
		resp, err := c.Do(post(t, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		again := make(chan error, 1)
		go func() {
			_, err := c.DoKey(post(t, "{}"), oncehttp.ResultOf(resp).Key)
			again <- err
		}()
		synctest.Wait()
		if _, err := c.Do(post(t, "{}")); err != nil {
			t.Error(err)
		}
		if err := <-again; err != nil || len(w.keys()) != 2 {
			t.Errorf("%v; %d keys, want 2", err, len(w.keys()))
		}
	})
}

// TestKeylessAfterTheAnswer: the same request once more, without a key, is an operation of its own while the first one's record
// is not written yet: its caller knows how that ended. So it is where the first was in doubt before.
func TestKeylessAfterTheAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j, w := &recording{Journal: memory.New(), takes: time.Minute}, &wire{replies: paid.replies}
		c, _ := newClient(t, w, on(j))
		for range 3 {
			if _, err := c.Do(post(t, "{}")); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.keys()) != 3 {
			t.Errorf("%d keys; want 3", len(w.keys()))
		}
	})
	bubble(t, func(t *testing.T) {
		j := &recording{Journal: memory.New(), takes: time.Minute}
		w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 }))
		_, err := c.Do(post(t, "{}"))
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		if _, err := c.Do(post(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatalf("without a key, while the first is in doubt: %v", err)
		}
		if _, err := c.DoKey(post(t, "{}"), e.Key); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(post(t, "{}")); err != nil || len(w.keys()) != 2 {
			t.Errorf("%v; %d keys, want 2", err, len(w.keys()))
		}
	})
}

// TestUnreadableWhileTheRecordIsWritten: a request that cannot be read says "no effect", also where its look at the journal saw
// such an operation just before its record was written.
func TestUnreadableWhileTheRecordIsWritten(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := &listsSlowly{recording: &recording{Journal: memory.New(), takes: time.Minute}, takes: 40 * time.Second}
		c, _ := newClient(t, &wire{replies: paid.replies}, on(j))
		if _, err := c.Do(post(t, "{}")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second) // the record is written while this call looks
		broken := post(t, "{}")
		broken.Body, broken.GetBody, broken.ContentLength = io.NopCloser(iotest.ErrReader(errors.New("broken"))), nil, -1
		_, err := c.Do(broken)
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Error(err)
		}
	})
}
