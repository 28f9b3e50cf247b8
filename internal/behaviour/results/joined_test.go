package results_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// unamended is a memory journal whose Amend fails on demand.
type unamended struct {
	*memory.Journal
	fails atomic.Bool
}

func (j *unamended) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if j.fails.Load() {
		return persist.Record{}, errors.New("no answer")
	}
	return j.Journal.Amend(ctx, rec)
}

// TestJoinedResult: a Do joins a pass that ends its operation with a refusal. Where the note that the Do is told fails, it has an unknown
// outcome in place of the answer, and OnResult gets the end. Where it does not, the Do has the end, and OnResult does not get it. (Invariant 53.)
func TestJoinedResult(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"the note fails": true, "the note is made": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := &unamended{Journal: memory.New()}
				var got atomic.Int32
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Body: `{"e":1}`, Header: "Content-Type: application/json", Delay: time.Second}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.Protected, func(cfg *oncehttp.Config) {
					cfg.OnResult = func(context.Context, persist.Record) error { got.Add(1); return nil }
				}))
				clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
				go func() {
					for range c.Resume(t.Context()) {
					}
				}()
				time.Sleep(500 * time.Millisecond) // it is on the wire
				j.fails.Store(fails)
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if resp != nil {
					clienttest.Must(t, resp.Body.Close())
				}
				if unknown := errors.Is(err, oncehttp.ErrOutcomeUnknown); unknown != fails {
					t.Fatalf("Do: %v; want an unknown outcome %t", err, fails)
				}
				j.fails.Store(false)
				stop := clienttest.Start(t, c)
				time.Sleep(2 * time.Hour)
				clienttest.Must(t, stop())
				rec, want := clienttest.Lookup(t, c, "k"), int32(0)
				if fails {
					want = 1
				}
				if got.Load() != want || rec.Owed() || rec.Told == fails {
					t.Errorf("OnResult was called %d times, want %d; the record is owed %t, told %t", got.Load(), want, rec.Owed(), rec.Told)
				}
			})
		})
	}
}
