package inflight

import (
	"context"
	"testing"
	"time"
)

// ownContext is a context of a user's own, which does something in each of its methods.
type ownContext struct {
	context.Context
	at func(method string)
}

func (c ownContext) Deadline() (time.Time, bool) { c.at("Deadline"); return c.Context.Deadline() }
func (c ownContext) Done() <-chan struct{}       { c.at("Done"); return c.Context.Done() }
func (c ownContext) Err() error                  { c.at("Err"); return c.Context.Err() }
func (c ownContext) Value(key any) any           { c.at("Value"); return c.Context.Value(key) }

// TestContextsAreAskedWithoutTheLock: the methods of a caller's context are a user's code, and may wait for another call. While one
// runs, the table is free.
func TestContextsAreAskedWithoutTheLock(t *testing.T) {
	t.Parallel()
	for _, from := range []struct {
		name string
		ctx  func() (context.Context, context.CancelFunc)
	}{
		{"cancelled", func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }},
		{"timed", func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), time.Hour)
		}},
		{"endless", func() (context.Context, context.CancelFunc) { return context.Background(), func() {} }},
	} {
		t.Run(from.name, func(t *testing.T) {
			t.Parallel()
			table := NewTable(func(string) {})
			asked := 0
			base, cancel := from.ctx()
			defer cancel()
			ctx := ownContext{base, func(method string) {
				asked++
				if !table.mu.TryLock() {
					t.Errorf("%s is called while the table is locked", method)
					return
				}
				table.mu.Unlock()
			}}
			first := begin(t, table, ctx, "k")
			second := join(t, table, ctx, "k", Joined)
			third := join(t, table, ctx, "k", Joined)
			first.Call().Deadline()
			table.GiveUpDraining(nil)
			second.Leave()
			third.Leave()
			next := begin(t, table, ctx, "other")
			next.Leave() // the last one
			first.Call().Run(func() string { return "" }, func(error) string { return "" })
			if _, err := first.Wait(); err != nil || asked == 0 {
				t.Errorf("%v; the context was asked %d times", err, asked)
			}
			first.Done()
		})
	}
}
