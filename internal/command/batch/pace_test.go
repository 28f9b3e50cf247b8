package batch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace(4)
		start := time.Now()
		for range 5 {
			p.wait(t.Context())
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("5 starts at 4 a second took %v, want 1s", took)
		}
		time.Sleep(time.Minute) // virtual: what is not used is not saved up
		start = time.Now()
		p.wait(t.Context())
		p.wait(t.Context())
		if took := time.Since(start); took != time.Second/4 {
			t.Errorf("2 starts after a pause took %v, want 250ms", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.wait(ctx)
		if took := time.Since(start); took != time.Second/4 {
			t.Errorf("a wait goes on after its context ended")
		}
	})
}
