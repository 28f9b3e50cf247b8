package results_test

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
)

// TestResultWorkers: so many calls of OnResult are under way at once, as long as so many results are owed, and never more.
func TestResultWorkers(t *testing.T) {
	t.Parallel()
	for set, want := range map[int]int32{0: 4, 1: 1, 30: 30} {
		synctest.Test(t, func(t *testing.T) {
			var now, top, calls atomic.Int32
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, func(cfg *oncehttp.Config) {
				cfg.ResultWorkers = set
				cfg.OnResult = func(context.Context, persist.Record) error {
					top.Store(max(top.Load(), now.Add(1)))
					calls.Add(1)
					time.Sleep(time.Second)
					now.Add(-1)
					return nil
				}
			})
			const operations = 60
			for i := range operations {
				clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i))))
			}
			pass(t, c, time.Hour)
			if calls.Load() != operations || top.Load() != want {
				t.Errorf("ResultWorkers %d: %d calls, at most %d at once; want %d, %d", set, calls.Load(), top.Load(), operations, want)
			}
		})
	}
}
