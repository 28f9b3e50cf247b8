package known

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestShare: a look that was under way when a caller came does not count for it; those who came meanwhile share the next one; another
// key does not wait.
func TestShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Looks[string, int]
		looks := 0
		look := func(context.Context) (int, error) { looks++; n := looks; time.Sleep(time.Second); return n, nil }
		began := time.Now()
		var all sync.WaitGroup
		share := func(key string, want int, after time.Duration) {
			all.Go(func() {
				got, err := l.Share(t.Context(), time.Minute, key, look)
				if took := time.Since(began); got != want || err != nil || took != after {
					t.Errorf("%d, %v after %v; want look %d after %v", got, err, took, want, after)
				}
			})
			synctest.Wait()
		}
		share("a", 1, time.Second)
		share("b", 2, time.Second)
		for range 10 {
			share("a", 3, 2*time.Second)
		}
		time.Sleep(1500 * time.Millisecond)
		share("a", 4, 3*time.Second)
		all.Wait()
		if len(l.at) != 0 {
			t.Errorf("%d queues are left", len(l.at))
		}
	})
}

// TestShareFails: those who share a look share its error; after a panic they get one, and the next look is made.
func TestShareFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Looks[string, int]
		gone := errors.New("gone")
		var all sync.WaitGroup
		call := func(f func(context.Context) (int, error), check func(err error, panicked any)) {
			all.Go(func() {
				var err error
				defer func() { check(err, recover()) }()
				_, err = l.Share(t.Context(), time.Minute, "a", f)
			})
			synctest.Wait()
		}
		slow := func(context.Context) (int, error) { time.Sleep(time.Second); return 0, gone }
		fails := func(err error, panicked any) {
			if !errors.Is(err, gone) || panicked != nil {
				t.Errorf("%v, panic %v", err, panicked)
			}
		}
		call(slow, fails)
		call(func(context.Context) (int, error) { time.Sleep(time.Second); panic("look") }, func(_ error, panicked any) {
			if panicked != "look" {
				t.Errorf("panic %v, want its own", panicked)
			}
		})
		call(slow, func(err error, panicked any) {
			if !errors.Is(err, errLookEnded) || panicked != nil {
				t.Errorf("%v, panic %v", err, panicked)
			}
		})
		all.Wait()
		call(slow, fails)
		all.Wait()
	})
}

// TestShareWaitsEnd: a look hangs. A wait for it ends with its context, and after its patience with a look of its own; who waited for a
// caller that has left waits on. A call inside a look never waits. The look has the values of its caller, and no end. Nothing is left.
func TestShareWaitsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type name struct{}
		var l Looks[string, int]
		began, goOn, gone := time.Now(), make(chan struct{}), errors.New("gone")
		var all sync.WaitGroup
		share := func(ctx context.Context, patience time.Duration, f func(context.Context) (int, error), want int, wantErr error, after time.Duration) {
			all.Go(func() {
				got, err := l.Share(ctx, patience, "a", f)
				if took := time.Since(began); got != want || !errors.Is(err, wantErr) || took != after {
					t.Errorf("%d, %v after %v; want %d, %v after %v", got, err, took, want, wantErr, after)
				}
			})
			synctest.Wait()
		}
		result := func(n int) func(context.Context) (int, error) {
			return func(context.Context) (int, error) { return n, nil }
		}
		ended, cancel := context.WithCancelCause(context.WithValue(t.Context(), name{}, "caller"))
		share(ended, 0, func(ctx context.Context) (int, error) {
			inner, err := l.Share(ctx, 0, "a", result(7))
			<-goOn
			if ctx.Err() != nil || ctx.Value(name{}) != "caller" || inner != 7 || err != nil {
				t.Errorf("the context of a look: %v, %v; inside it %d, %v", ctx.Err(), ctx.Value(name{}), inner, err)
			}
			return 1, nil
		}, 1, nil, time.Hour)
		short, stop := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer stop()
		share(short, time.Minute, result(2), 0, gone, time.Second)          // it is to make the next look, and leaves
		share(t.Context(), time.Minute, result(3), 3, nil, time.Minute)     // it waited for that one
		share(t.Context(), 0, result(4), 4, nil, time.Hour)                 // likewise, without an end
		share(t.Context(), 2*time.Minute, result(5), 5, nil, 2*time.Minute) // likewise
		share(short, time.Minute, result(6), 0, gone, time.Second)          // likewise
		time.Sleep(time.Hour)
		cancel(gone)
		close(goOn)
		all.Wait()
		if len(l.at) != 0 {
			t.Errorf("%d queues are left", len(l.at))
		}
	})
}
