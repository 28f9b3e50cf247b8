package known

import (
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
		look := func() (int, error) { looks++; n := looks; time.Sleep(time.Second); return n, nil }
		began := time.Now()
		var all sync.WaitGroup
		share := func(key string, want int, after time.Duration) {
			all.Go(func() {
				got, err := l.Share(key, look)
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
		call := func(f func() (int, error), check func(err error, panicked any)) {
			all.Go(func() {
				var err error
				defer func() { check(err, recover()) }()
				_, err = l.Share("a", f)
			})
			synctest.Wait()
		}
		slow := func() (int, error) { time.Sleep(time.Second); return 0, gone }
		fails := func(err error, panicked any) {
			if !errors.Is(err, gone) || panicked != nil {
				t.Errorf("%v, panic %v", err, panicked)
			}
		}
		call(slow, fails)
		call(func() (int, error) { time.Sleep(time.Second); panic("look") }, func(_ error, panicked any) {
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
