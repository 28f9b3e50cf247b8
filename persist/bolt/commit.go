package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Group commit. Whoever finds nobody committing commits what is queued, for
// itself and for all who join: a lone caller pays for no hand-over. Whoever
// comes meanwhile waits, and the first of those commits next. Before it takes
// the queue, a committer yields once, so that the callers whom the last commit
// has just released can join: without that every other commit would serve a
// handful. There is no timer but for what nobody waits for.
const (
	// flushDelay is how long a Finish stays queued while nobody commits. With
	// the commit itself it stays under the 10 ms that Finish promises.
	flushDelay = 4 * time.Millisecond
	// retryDelay is how long what nobody waits for stays queued after a commit
	// that definitely failed, as on a full disk.
	retryDelay = 100 * time.Millisecond
	// lazyMax and lazyBytesMax bound what may be queued without anybody waiting.
	lazyMax      = 4096
	lazyBytesMax = 4 << 20
	// yieldMax bounds how often a committer yields before it commits.
	yieldMax = 8
)

// await waits until b is settled, and commits it if nobody else does. The
// caller holds mu, which await gives up.
func (j *Journal) await(b *batch) error {
	lead := false
	if b == j.collecting {
		b.waiters++
		lead = !j.leading
		j.leading = j.leading || lead
	}
	j.mu.Unlock()
	if lead || <-b.wake {
		j.lead()
	}
	return b.err
}

// flushIdle commits what nobody waits for.
func (j *Journal) flushIdle() {
	j.mu.Lock()
	b := j.collecting
	b.armed = false
	if j.closed || j.leading || len(b.changes) == 0 {
		b.due = true
		j.mu.Unlock()
		return
	}
	j.leading = true
	j.mu.Unlock()
	j.lead()
}

// lead commits what is queued, then passes the lead on, or gives it up.
func (j *Journal) lead() {
	j.gather()
	b := j.collecting
	if b.err = j.broken; b.err == nil {
		b.digest, b.records, b.lastSeq = j.slots.digest, uint64(j.slots.count), j.seq
		j.flying, j.collecting = b, newBatch(j.spare)
		j.spare = spare{}
		j.mu.Unlock()
		b.err = j.write(b)
		j.mu.Lock()
		j.flying = nil
		j.settle(b)
	} else {
		j.collecting = newBatch(spare{})
	}
	j.pass()
	j.mu.Unlock()
	close(b.wake)
}

// gather yields for as long as callers join, and returns with mu held.
func (j *Journal) gather() {
	joined := 0
	for range yieldMax {
		runtime.Gosched()
		j.mu.Lock()
		n := j.collecting.waiters
		if n <= joined+1 {
			return
		}
		joined = n
		j.mu.Unlock()
	}
	j.mu.Lock()
}

// pass hands the lead to a waiter of the next batch. The caller holds mu.
func (j *Journal) pass() {
	next := j.collecting
	if next.waiters > 0 {
		next.wake <- true
		return
	}
	if next.due && len(next.changes) > 0 {
		// Its time came during the commit that has just ended.
		go j.lead()
		return
	}
	j.leading = false
	j.idle.Broadcast()
}

// settle draws the conclusions from a commit. The caller holds mu.
func (j *Journal) settle(b *batch) {
	switch {
	case b.err == nil:
		j.stats.Commits++
		j.stats.Changes += int64(len(b.changes))
		j.spare = b.recycle()
	case errors.Is(b.err, persist.ErrUncertain):
		j.broken = b.err
	default:
		j.undo(b)
	}
}

// undo takes back, in memory, a batch that was definitely not written, and what
// was queued on top of it. What nobody waits for is queued again if it still
// fits. The caller holds mu.
func (j *Journal) undo(b *batch) {
	next := j.collecting
	j.collecting = newBatch(spare{})
	var lazy []change
	for _, b := range [...]*batch{next, b} {
		for i := len(b.changes) - 1; i >= 0; i-- {
			c := &b.changes[i]
			after, _ := j.slots.get(c.seq)
			j.restore(c)
			if c.lazy && c.intent == nil && !c.drop {
				c.after = after
				lazy = append(lazy, *c)
			}
		}
	}
	for i := len(lazy) - 1; i >= 0; i-- {
		j.requeue(lazy[i])
	}
	next.err = b.err
	if next.waiters > 0 {
		// Nobody leads them any more: tell them all.
		close(next.wake)
	}
	if len(j.collecting.changes) > 0 {
		j.collecting.armed = true
		j.timer.Reset(retryDelay)
	}
}

// restore undoes one change in memory.
func (j *Journal) restore(c *change) {
	switch {
	case c.fresh:
		s, _ := j.slots.get(c.seq)
		if c.drop {
			return
		}
		j.removeSlot(c.seq, s, c.keys)
		return
	case c.drop:
		j.ids.add(c.keys.id, c.seq)
	}
	now, stands := j.slots.get(c.seq)
	j.slots.set(c.seq, c.before)
	wasOpen := stands && now.is(slotOpen)
	if c.before.is(slotGenerated) && c.before.is(slotOpen) && !wasOpen {
		j.strays.add(c.keys.stray, c.seq)
	}
}

// requeue queues a Finish again.
func (j *Journal) requeue(c change) {
	s, found := j.slots.get(c.seq)
	if !found || s != c.before {
		return
	}
	if s.is(slotGenerated) {
		j.strays.remove(c.keys.stray, c.seq)
	}
	j.slots.set(c.seq, c.after)
	j.collecting.put(c)
}

// uncertain wraps the cause of a commit of which nothing is known.
func (j *Journal) uncertain(cause error) error {
	return fmt.Errorf("persist/bolt: %s: %w: %w", j.path, persist.ErrUncertain, cause)
}
