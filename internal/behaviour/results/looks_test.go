package results_test

import (
	"context"
	"fmt"
	"iter"
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

// slowLooks is a journal with many owed results: to list them takes a second.
type slowLooks struct {
	*memory.Journal
	looks atomic.Int32
}

func (s *slowLooks) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if q.Owed {
		s.looks.Add(1)
		time.Sleep(time.Second)
	}
	return s.Journal.List(ctx, q)
}

// TestLooksAreSeldom: the looks for owed results take a twentieth of the time at most, and this process delivers its own results without one.
func TestLooksAreSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b business
		j := &slowLooks{Journal: memory.New()}
		c := client(t, j, &b, wiretest.Reply{Status: 201})
		stop := clienttest.Start(t, c)
		time.Sleep(time.Hour)
		if n := j.looks.Load(); n < 100 || n > 180 {
			t.Errorf("%d looks in an hour, of a second each; want about 171", n)
		}
		for i := range 30 {
			began := time.Now()
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i))))
			time.Sleep(3 * time.Second)
			b.mu.Lock()
			if n := len(b.at); n != i+1 || b.at[i].Sub(began) > 1500*time.Millisecond {
				t.Errorf("%d results after operation %d, in a journal whose looks are seldom; want each within a look", n, i)
			}
			b.mu.Unlock()
		}
		clienttest.Must(t, stop())
	})
}
