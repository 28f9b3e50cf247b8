package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Group commit. Whoever finds nobody committing commits what is queued, for
// itself and for all who join: a lone caller pays for no hand-over. Whoever
// comes meanwhile waits, and the first of those commits next. Before it takes
// the queue, a committer yields for as long as others join, so that the callers
// whom the last commit has just released are served by this one: without that
// every other commit would serve a handful. Where all of them are known to come back
// soon it even waits until they have, see gatherAll and crowd; that is the one timer
// for those who wait.
//
// What nobody waits for, a Finish, has a queue of its own, which joins a commit
// every few milliseconds. So most commits write the end of one tree instead of
// two.
const (
	// flushDelay is how long a Finish stays queued. With the commit itself it
	// stays under the 10 ms that Finish promises.
	flushDelay = 4 * time.Millisecond
	// retryDelay is how long it stays queued after a commit that definitely
	// failed, as on a full disk.
	retryDelay = 100 * time.Millisecond
	// lazyJoin is how many of them join the next commit in any case, lazyMax and
	// lazyBytesMax how much may be queued before a Finish waits.
	lazyJoin     = 512
	lazyMax      = 4096
	lazyBytesMax = 4 << 20
	// yieldMax bounds how often a committer yields before it commits.
	yieldMax = 8
	// A commit is worth waiting for others if its sync takes noticeSync or more, and
	// then for a fifth of that, at least gatherMin and at most gatherMax.
	noticeSync = 50 * time.Microsecond
	gatherMin  = 200 * time.Microsecond
	gatherMax  = 5 * time.Millisecond
)

// await waits until b is settled, and commits it if nobody else does. The
// caller holds mu, which await gives up.
func (j *Journal) await(b *batch) error {
	lead := false
	if b == j.collecting {
		b.waiters++
		j.crowd.join()
		lead = !j.leading
		j.leading = true
	}
	if !lead && b.wake == nil {
		b.wake = make(chan bool, 1)
	}
	wake := b.wake
	j.mu.Unlock()
	if lead || <-wake {
		j.lead()
	}
	return b.err
}

// putLazy queues a Finish that nobody waits for. The caller holds mu.
func (j *Journal) putLazy(c change, after slot) {
	j.lazy.put(c)
	j.lazyDigest += after.contribution(c.seq) - c.before.contribution(c.seq)
	if !j.armed {
		j.armed = true
		j.timer.Reset(flushDelay)
	}
}

// flushIdle is what the timer does: the next commit takes what nobody waits for,
// and if nobody is about to commit, it does that itself.
func (j *Journal) flushIdle() {
	j.mu.Lock()
	j.due = true
	if j.closed || j.leading || len(j.lazy.changes) == 0 {
		j.mu.Unlock()
		return
	}
	j.leading, j.crowd.soon = true, false // nobody waits for this commit, nor does it for anybody
	j.mu.Unlock()
	j.lead()
}

// lead commits what is queued, then passes the lead on, or gives it up.
func (j *Journal) lead() {
	j.gather()
	b := j.collecting
	j.take(b)
	if b.err = j.broken; b.err == nil {
		j.mu.Unlock()
		err := j.write(b)
		j.mu.Lock()
		b.err = err
	}
	j.flying = nil
	j.settle(b)
	j.crowd.release(b.waiters, gatherTime(j.syncTime))
	j.pass()
	wake := b.wake
	j.mu.Unlock()
	if wake != nil {
		close(wake)
	}
}

// gather yields for as long as callers join, and returns with mu held.
func (j *Journal) gather() {
	for joined, yields := 0, 1; ; yields++ {
		runtime.Gosched()
		j.mu.Lock()
		n := j.collecting.waiters
		if n <= joined+1 || yields == yieldMax {
			break
		}
		joined = n
		j.mu.Unlock()
	}
	if wait := gatherTime(j.syncTime); wait > 0 && j.crowd.missing() && j.usable() == nil {
		j.gatherAll(wait)
	}
}

// gatherTime is how long a commit may wait for callers to join, by what a sync takes.
func gatherTime(sync time.Duration) time.Duration {
	if sync < noticeSync {
		return 0
	}
	return min(max(sync/5, gatherMin), gatherMax)
}

// gatherAll waits until everybody is back: half a batch costs as much as a whole
// one. The last to join ends the wait. It does not yield but block, or the scheduler
// would find work in this goroutine and leave the others where they are. The caller
// holds mu, and does so again on return.
func (j *Journal) gatherAll(wait time.Duration) {
	full := make(chan struct{})
	j.crowd.full = full
	j.mu.Unlock()
	late := time.NewTimer(wait)
	select {
	case <-full:
	case <-late.C:
	}
	late.Stop()
	j.mu.Lock()
	j.crowd.full = nil
}

// take makes b the batch under commit. The caller holds mu.
func (j *Journal) take(b *batch) {
	if j.due || len(j.lazy.changes) >= lazyJoin {
		for i := range j.lazy.changes {
			b.put(j.lazy.changes[i])
		}
		j.lazy.reset()
		j.lazyDigest, j.due, j.armed = 0, false, false
	}
	// What is still queued is in memory, but will not be in the file.
	// What b forgets is the other way round.
	b.state = state{digest: j.slots.digest - j.lazyDigest - b.forgottenDigest, records: uint64(j.slots.count) - b.forgotten, lastSeq: j.seq}
	next := j.spare
	j.spare = nil
	if next == nil {
		next = newQueue()
	}
	j.flying, j.collecting = b, &batch{queue: next}
}

// pass hands the lead to a waiter of the next batch. The caller holds mu.
func (j *Journal) pass() {
	switch next := j.collecting; {
	case next.waiters > 0:
		next.wake <- true
	case j.due && len(j.lazy.changes) > 0 && j.broken == nil:
		// Their time came during the commit that has just ended.
		go j.lead()
	default:
		j.leading = false
		j.idle.Broadcast()
	}
}

// settle draws the conclusions from a commit. The caller holds mu.
func (j *Journal) settle(b *batch) {
	switch {
	case b.err == nil:
		j.stats.Commits++
		j.stats.Changes += int64(len(b.changes))
		if b.forgotten > 0 {
			j.removeForgotten(b)
		}
		b.reset()
		j.spare = b.queue
	case errors.Is(b.err, persist.ErrUncertain):
		j.broken = b.err
	default:
		j.undo(b)
	}
}

// removeForgotten takes out of memory what is gone from the file. The caller holds
// mu.
func (j *Journal) removeForgotten(b *batch) {
	for i := range b.changes {
		c := &b.changes[i]
		if s, stands := j.slots.get(c.seq); c.drop && stands {
			j.removeSlot(c.seq, s, c.keys)
		}
	}
}

// undo takes back, in memory, a batch that was definitely not written, and what
// was queued on top of it. What nobody waits for is queued again if it still
// fits. The caller holds mu.
func (j *Journal) undo(b *batch) {
	next := j.collecting
	j.collecting = &batch{queue: newQueue()}
	var again []change
	for _, q := range [...]*queue{j.lazy, next.queue, b.queue} {
		for i := len(q.changes) - 1; i >= 0; i-- {
			c := &q.changes[i]
			after, _ := j.slots.get(c.seq)
			j.restore(c)
			if c.lazy {
				c.after = after
				again = append(again, *c)
			}
		}
	}
	j.lazy.reset()
	// The timer is set once, and for later.
	j.lazyDigest, j.due, j.armed = 0, false, true
	for _, c := range slices.Backward(again) {
		j.requeue(c)
	}
	if j.armed = len(j.lazy.changes) > 0; j.armed {
		j.timer.Reset(retryDelay)
	}
	// Those who wait for what was queued on top are told the same.
	next.err = b.err
	j.crowd.here -= next.waiters
	if next.waiters > 0 {
		close(next.wake)
	}
}

// restore undoes one change in memory.
func (j *Journal) restore(c *change) {
	now, stands := j.slots.get(c.seq)
	if c.fresh {
		if stands {
			j.removeSlot(c.seq, now, c.keys)
		}
		return
	}
	if c.drop && !stands { // what Forget was to remove stands
		j.ids.add(c.keys.id, c.seq)
	}
	j.slots.set(c.seq, c.before)
	was := stands && now.unresolved()
	j.index(c.keys, c.seq, was, c.before.unresolved())
}

// requeue queues a Finish again, if it still fits.
func (j *Journal) requeue(c change) {
	s, found := j.slots.get(c.seq)
	if !found || s != c.before {
		return
	}
	j.index(c.keys, c.seq, s.unresolved(), c.after.unresolved())
	j.slots.set(c.seq, c.after)
	j.putLazy(c, c.after)
}

// uncertain wraps the cause of a commit of which nothing is known.
func (j *Journal) uncertain(cause error) error {
	return fmt.Errorf("persist/bolt: %s: %w: %w", j.path, persist.ErrUncertain, cause)
}
