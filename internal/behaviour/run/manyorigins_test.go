package run_test

import (
	"context"
	"fmt"
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

// slowDue is a journal that needs a second to say what is due, as one with many origins does.
type slowDue struct {
	*memory.Journal
	asked atomic.Int64
}

func (s *slowDue) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	s.asked.Add(1)
	time.Sleep(time.Second)
	return s.Journal.DueTimes(ctx, q)
}

// TestRunWithManyOrigins: Run goes on with what it knows to be due, and does not ask again for each few operations.
func TestRunWithManyOrigins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const origins = 400
		api := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		j := &slowDue{Journal: memory.New()}
		c, _ := clienttest.New(t, api, clienttest.On(j))
		for i := range origins {
			clienttest.EnqueueAt(t, c, fmt.Sprintf("c%d.example", i), 1)
		}
		stop := clienttest.Run(t, c)
		time.Sleep(1500 * time.Millisecond)
		if api.Count() != origins {
			t.Errorf("%d of %d were sent after a second and a half", api.Count(), origins)
		}
		if err := stop(); err != nil || j.asked.Load() > 3 {
			t.Errorf("%v; the journal was asked %d times", err, j.asked.Load())
		}
	})
}

// TestRunAsksBesideABacklog: what falls due at another origin meanwhile does not wait for the end of a backlog, however long the
// journal needs to say so.
func TestRunAsksBesideABacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, quick := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 20 * time.Second}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		j := &slowDue{Journal: memory.New()}
		c, _ := clienttest.New(t, wiretest.ByHost{"slow.example": slow, "quick.example": quick}, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.OriginWorkers = 4 }))
		clienttest.EnqueueAt(t, c, "slow.example", 200)
		stop := clienttest.Run(t, c)
		time.Sleep(2 * time.Minute)
		for i := range 5 {
			if err := c.Enqueue(clienttest.Request(t, "POST", "https://quick.example/", "{}"), oncehttp.Key(fmt.Sprint("quick", i))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second) // four times as long as it takes to ask, and that twice
			if quick.Count() != 1+i {
				t.Errorf("%d of %d were sent beside a backlog", quick.Count(), 1+i)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
