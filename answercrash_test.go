package oncehttp_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestObserveCrashesBeforeTheRecord: an answer is recorded although Config.Observe panics, or ends its goroutine, when it is told.
func TestObserveCrashesBeforeTheRecord(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(){"panics": func() { panic("a nil map") }, "exits": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				j, w := &recording{Journal: memory.New(), takes: time.Minute}, &wire{replies: paid.replies}
				c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) {
					cfg.Observe = func(_ context.Context, e oncehttp.Event) {
						if e.Kind == oncehttp.EventFinished {
							crash()
						}
					}
				}))
				var err error
				caught := func() (v any) {
					defer func() { v = recover() }()
					_, err = c.DoKey(post(t, "{}"), "k")
					return nil
				}()
				if (caught == nil) == (err == nil) {
					t.Errorf("%v, %v", caught, err)
				}
				if rec := lookup(t, c, "k"); rec.State != persist.StateConfirmed || oncehttp.Running(c) != 0 {
					t.Errorf("it is %v, %d calls have a place; want confirmed and none", rec.State, oncehttp.Running(c))
				}
			})
		})
	}
}
