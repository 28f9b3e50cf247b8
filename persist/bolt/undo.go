package bolt

import "slices"

// undo takes back, in memory, a batch that was certainly not written, and all changes queued after it: they may rest on it. The callers of the others get the
// error of b. Changes that no caller waits for (lazy) are queued again if they still fit; after is the slot that they have left in memory. The caller holds
// mu.
func (j *Journal) undo(b *batch) {
	next := j.collecting
	j.collecting = &batch{queue: newQueue()}
	var again []change
	// Newest first, each change as it was before it.
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
	// timerSet keeps requeue from setting the timer: it is set once below, and for later.
	j.lazyDigest, j.lazyDue, j.timerSet = 0, false, true
	for _, c := range slices.Backward(again) {
		j.requeue(c)
	}
	if j.timerSet = len(j.lazy.changes) > 0; j.timerSet {
		j.timer.Reset(retryDelay)
	}
	// Callers waiting for the changes on top get the same error.
	next.err = b.err
	j.waiters.now -= next.waiters
	if next.waiters > 0 {
		close(next.wake)
	}
}

// restore undoes one change in memory, after its commit has failed and nothing was written. A new record goes, and any other has its slot (what memory knows
// of it) and its places in the indexes as before. The index of unresolved records has those whose end a caller without a key may still have to hear. The
// caller holds mu.
func (j *Journal) restore(c *change) {
	now, exists := j.slots.get(c.seq)
	if c.fresh {
		if exists {
			j.removeSlot(c.seq, now, c.keys)
		}
		return
	}
	if c.moved && c.was != c.keys.id {
		j.ids.remove(c.keys.id, c.seq)
	}
	if c.drop && !exists { // Sweep has removed it from memory already
		j.ids.add(c.keys.id, c.seq)
	}
	j.slots.set(c.seq, c.before)
	was := exists && now.unresolved()
	j.index(c.keys, c.seq, was, c.before.unresolved())
}

// requeue queues a change without a waiting caller again, after the commit with it has failed. It does so only if undo has left the record's slot in memory as
// it was before this change. The caller holds mu.
func (j *Journal) requeue(c change) {
	s, found := j.slots.get(c.seq)
	if !found || s != c.before {
		return
	}
	j.index(c.keys, c.seq, s.unresolved(), c.after.unresolved())
	j.slots.set(c.seq, c.after)
	j.putLazy(c, c.after)
}

// removeForgotten takes deleted records out of memory. b has the changes of the commit that has deleted them from the file. The caller holds mu.
func (j *Journal) removeForgotten(b *batch) {
	for i := range b.changes {
		c := &b.changes[i]
		if s, exists := j.slots.get(c.seq); c.drop && exists {
			j.removeSlot(c.seq, s, c.keys)
		}
	}
}
