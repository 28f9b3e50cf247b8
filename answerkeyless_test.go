package oncehttp_test

import (
	"context"
	"iter"
	"testing"
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
