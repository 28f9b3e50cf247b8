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

// TestSlowDiskWaitsInVain: those who do not come back are waited for once at most.
// Many begin together here, again and again, then one goes on alone. How many of them
// share a commit is the scheduler's, so that it may be none who is waited for; that
// somebody is waited for at all is TestSlowDiskServesAll's.
func TestSlowDiskWaitsInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := openSlow(t)
		late := 0
		for round := range 10 {
			for i := range 5 {
				together(t, j, fmt.Sprint("many-", round, "-", i), 8)
			}
			for i := range 10 {
				began := time.Now()
				begin(t, j, record(fmt.Sprint("alone-", round, "-", i)))
				switch took := time.Since(began); {
				case took > slowTime+slowTime/5:
					t.Errorf("a begin took %v where a sync takes %v", took, slowTime)
				case took > slowTime:
					late++
				}
			}
		}
		if late > 10 {
			t.Errorf("waited %d times for those who were gone; want once for each of 10 times that they went, at most", late)
		}
		closeIt(t, j)
	})
}

// TestSlowDiskKnowsWhoGoes: where many come together and only one comes next, again
// and again, the one does not wait for the many.
func TestSlowDiskKnowsWhoGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rounds = 50
		j := openSlow(t)
		late := 0
		for i := range rounds {
			together(t, j, fmt.Sprint("pair-", i), 2)
			began := time.Now()
			begin(t, j, record(fmt.Sprint("alone-", i)))
			if time.Since(began) > slowTime {
				late++
			}
		}
		if late > rounds/10 {
			t.Errorf("%d of %d waited for somebody who was gone; want a tenth at most", late, rounds)
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
			for n := range 3 { // who were back soon each time
				together(t, j, fmt.Sprint("busy-", i, "-", n), 8)
			}
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

// TestOneSlowSync: a single sync that took long says nothing about the next; who is
// waited for after it is waited for as on a quick disk, a fifth of a millisecond.
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
		if took := time.Since(began); took > quick+quick {
			t.Errorf("a begin took %v, want a sync's %v and as much again at most", took, quick)
		}
		closeIt(t, j)
	})
}
