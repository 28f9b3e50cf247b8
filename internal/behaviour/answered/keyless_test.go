package answered_test

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
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// listsSlowly is a recording whose List reads at once, and takes its time to give what it has read.
type listsSlowly struct {
	*journaltest.Recording
	takes time.Duration
}

func (s *listsSlowly) FinishesLate() persist.Journal { return s }

func (s *listsSlowly) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		var records []persist.Record
		for rec, err := range s.Recording.List(ctx, q) {
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
	synctest.Test(t, func(t *testing.T) {
		j := &listsSlowly{Recording: &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}, takes: 40 * time.Second}
		w := wiretest.Paid()
		c, _ := clienttest.New(t, w, clienttest.On(j))
		for range 2 {
			if _, err := c.Do(clienttest.Post(t, "{}")); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.Keys()) != 2 {
			t.Errorf("%d keys; want 2", len(w.Keys()))
		}
	})
}

// TestKeylessBesideTheSameKey: so it is while another caller waits with the first operation's key for its record.
func TestKeylessBesideTheSameKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, w := &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}, wiretest.Paid()
		c, _ := clienttest.New(t, w, clienttest.On(j))
		resp, err := c.Do(clienttest.Post(t, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		again := make(chan error, 1)
		go func() {
			_, err := c.DoKey(clienttest.Post(t, "{}"), oncehttp.ResultOf(resp).Key)
			again <- err
		}()
		synctest.Wait()
		if _, err := c.Do(clienttest.Post(t, "{}")); err != nil {
			t.Error(err)
		}
		if err := <-again; err != nil || len(w.Keys()) != 2 {
			t.Errorf("%v; %d keys, want 2", err, len(w.Keys()))
		}
	})
}

// TestKeylessAfterTheAnswer: the same request once more, without a key, is an operation of its own while the first one's record
// is not written yet: its caller knows how that ended. So it is where the first was in doubt before.
func TestKeylessAfterTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, w := &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}, wiretest.Paid()
		c, _ := clienttest.New(t, w, clienttest.On(j))
		for range 3 {
			if _, err := c.Do(clienttest.Post(t, "{}")); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.Keys()) != 3 {
			t.Errorf("%d keys; want 3", len(w.Keys()))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 }))
		_, err := c.Do(clienttest.Post(t, "{}"))
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		if _, err := c.Do(clienttest.Post(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatalf("without a key, while the first is in doubt: %v", err)
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), e.Key); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(clienttest.Post(t, "{}")); err != nil || len(w.Keys()) != 2 {
			t.Errorf("%v; %d keys, want 2", err, len(w.Keys()))
		}
	})
}

// TestUnreadableWhileTheRecordIsWritten: a request that cannot be read says "no effect", also where its look at the journal saw
// such an operation just before its record was written.
func TestUnreadableWhileTheRecordIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &listsSlowly{Recording: &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}, takes: 40 * time.Second}
		c, _ := clienttest.New(t, wiretest.Paid(), clienttest.On(j))
		if _, err := c.Do(clienttest.Post(t, "{}")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second) // the record is written while this call looks
		broken := clienttest.Post(t, "{}")
		broken.Body, broken.GetBody, broken.ContentLength = io.NopCloser(iotest.ErrReader(errors.New("broken"))), nil, -1
		_, err := c.Do(broken)
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Error(err)
		}
	})
}
