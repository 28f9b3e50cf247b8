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
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestDeliveriesBehind: operations end faster than OnResult takes their results. Each result is delivered in its turn, also after the time for which this process
// has reserved it; none waits until that reservation is over.
func TestDeliveriesBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ends, took = 40, 2 * time.Second
		var last atomic.Int64 // nanoseconds since 1970
		got := make(chan string, 2*ends)
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(memory.New(), clienttest.Protected, func(cfg *oncehttp.Config) {
			cfg.OnResult = func(_ context.Context, rec persist.Record) error {
				time.Sleep(took)
				got <- rec.Key
				last.Store(time.Now().UnixNano())
				return nil
			}
		}))
		for i := range ends {
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i))))
		}
		began := time.Now()
		pass(t, c, 10*time.Minute)
		if len(got) != ends {
			t.Errorf("%d deliveries of %d results", len(got), ends)
		}
		if late := time.Unix(0, last.Load()).Sub(began); late > ends*took {
			t.Errorf("the last result was delivered after %v", late)
		}
	})
}
