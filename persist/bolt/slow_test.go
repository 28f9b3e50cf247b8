package bolt_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist/bolt"
)

const slowTime = 10 * time.Millisecond

// openSlow opens a journal on a disk whose every sync takes slowTime, in a bubble.
func openSlow(t *testing.T) *bolt.Journal {
	t.Helper()
	took := slowTime
	return openTaking(t, &took)
}

// openTaking opens a journal on a disk whose syncs take as long as *took says.
func openTaking(t *testing.T, took *time.Duration) *bolt.Journal {
	t.Helper()
	return openWith(t, newPath(t), bolt.Options{Sync: func(*os.File) error {
		time.Sleep(*took)
		return nil
	}})
}

// together begins n records at once.
func together(t *testing.T, j *bolt.Journal, name string, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { begin(t, j, record(fmt.Sprint(name, "-", i))) })
	}
	wg.Wait()
}

// TestSlowDiskServesAll: where a sync takes long, a commit waits a little for those
// who were there before, so that everybody shares each. They come back one after
// the other here, half a millisecond later at most: in time. Without the wait, two
// halves of them would take turns.
func TestSlowDiskServesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const writers, each = 32, 20
		j := openSlow(t)
		before := j.Stats().Commits
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					begin(t, j, record(fmt.Sprint(w, "-", i)))
					time.Sleep(time.Duration(w) * 15 * time.Microsecond)
				}
			})
		}
		wg.Wait()
		if n := j.Stats().Commits - before; n > each+4 {
			t.Errorf("%d writers who began %d records each took %d commits", writers, each, n)
		}
		closeIt(t, j)
	})
}

// TestSlowDiskWaitsInVain: where the others do not come back, waiting for them is
// given up. Two begin together here, then one alone, again and again.
func TestSlowDiskWaitsInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rounds = 300
		j := openSlow(t)
		late := 0
		for i := range rounds {
			together(t, j, fmt.Sprint("pair-", i), 2)
			began := time.Now()
			begin(t, j, record(fmt.Sprint("alone-", i)))
			switch took := time.Since(began); {
			case took > slowTime+slowTime/5:
				t.Errorf("a begin took %v where a sync takes %v", took, slowTime)
			case took > slowTime:
				late++
			}
		}
		// After the first, second, fourth and so on to the 64th in vain, then every 65th.
		if late == 0 || late > 7+rounds/64 {
			t.Errorf("%d of %d waited for somebody who was gone; want a few", late, rounds)
		}
		closeIt(t, j)
	})
}

// TestSlowDiskKeepsFinish: a Finish is durable 10 ms later where a sync takes just
// under six, since its commit waits for nobody.
func TestSlowDiskKeepsFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		took := 5500 * time.Microsecond
		j := openTaking(t, &took)
		for i := range 20 {
			r := begin(t, j, record(fmt.Sprint(i)))
			commits := j.Stats().Commits
			finish(t, j, r)
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if j.Stats().Commits == commits {
				t.Errorf("finish %d is not durable after 10 ms", i)
			}
			time.Sleep(time.Second)
		}
		closeIt(t, j)
	})
}

// TestOneSlowSync: a single sync that took long says nothing about the next.
func TestOneSlowSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const quick = 200 * time.Microsecond
		once := time.Duration(0)
		j := openWith(t, newPath(t), bolt.Options{Sync: func(*os.File) error {
			time.Sleep(quick + once)
			once = 0
			return nil
		}})
		together(t, j, "before", 8)
		once = 100 * time.Millisecond
		together(t, j, "then", 8)
		began := time.Now()
		begin(t, j, record("alone"))
		if waited := time.Since(began); waited != quick {
			t.Errorf("a begin took %v, want a sync's %v", waited, quick)
		}
		closeIt(t, j)
	})
}
