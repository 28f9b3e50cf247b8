package keyless_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
)

// TestLeftCallIsInTheWay: a caller without a key leaves a call that goes on for another one, who has learnt its key. The same request without a key
// begins nothing beside it: the first caller was told that the outcome is unknown.
func TestLeftCallIsInTheWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}", Delay: 20 * time.Second}}}
		c, _ := clienttest.New(t, w, nil)
		ctx, cancel := context.WithCancel(t.Context())
		req := clienttest.Post(t, "{}").WithContext(ctx)
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { _, err := c.Do(req); first <- err }()
		synctest.Wait()
		var key oncehttp.Key
		for rec, err := range c.Unfinished(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			key = oncehttp.Key(rec.Key)
		}
		go func() { _, err := c.DoKey(clienttest.Post(t, "{}"), key); second <- err }()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("the caller that left: %v, want ErrOutcomeUnknown", err)
		}
		_, err := c.Do(clienttest.Post(t, "{}"))
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("again without a key: %v, want ErrOutcomeUnknown", err)
		}
		if err := <-second; err != nil || w.Count() != 1 {
			t.Errorf("the other: %v, %d sends in all, want 1", err, w.Count())
		}
	})
}
