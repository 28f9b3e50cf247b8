package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Group commit: one commit serves every caller waiting at this moment.
//
// A caller finding no commit under way commits the queued changes, for itself and for all callers joining
// it. So a lone caller hands nothing over. Callers coming meanwhile wait, and the first of them commits
// next. Before a committer takes the queue, it yields for as long as others join. So it serves the callers
// just released by the last commit, too. Otherwise every other commit would serve a few only. If all of
// them are known to come back soon, the committer waits until they have, see waitForJoiners below and
// waiters.go. This is the only timer for waiting callers.
//
// The changes of Finish and MarkReported have no waiting caller. They have a queue of their own; it joins a
// commit every few milliseconds. So most commits write the end of one tree instead of two.
const (
	// flushDelay is how long such a change stays queued. With the commit itself it stays under the 10 ms
	// promised by Finish.
	flushDelay = 4 * time.Millisecond
	// retryDelay is how long it stays queued after a commit definitely not written, as on a full disk.
	retryDelay = 100 * time.Millisecond
	// lazyJoin is how many of them join the next commit in any case; lazyMax and
	// lazyBytesMax are how much may be queued before a Finish waits.
	lazyJoin     = 512
	lazyMax      = 4096
	lazyBytesMax = 4 << 20
	// yieldMax is how often a committer yields before it commits.
	yieldMax = 8
	// A commit waits for joiners if its sync takes noticeSync or more. It waits for a fifth of this time,
	// at least joinMin and at most joinMax.
	noticeSync = 50 * time.Microsecond
	joinMin    = 200 * time.Microsecond
	joinMax    = 5 * time.Millisecond
)

// unlockAndAwait waits until the batch b (the changes of one commit) is durable or has failed, and commits it if no other caller does. It returns the error of
// the commit. One caller at a time commits for all: j.leading says that there is one. For changes in b = j.collecting (not yet begun) the caller counts as a
// waiting one (waiters). A value from wake tells a waiting caller that it is the next to commit; wake is closed once b is over. The caller holds mu;
// unlockAndAwait unlocks it before it waits.
func (j *Journal) unlockAndAwait(b *batch) error {
	// A batch already being committed needs no other committer.
	lead := false
	if b == j.collecting {
		b.waiters++
		j.waiters.join()
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

// putLazy queues a change that no caller waits for, such as that of a Finish. A timer has it committed within flushDelay, unless another commit takes it
// before. after is the record's slot in memory after the change. lazyDigest is how much these changes add to the digest, the sum over all records: a commit
// without them leaves it out. The caller holds mu.
func (j *Journal) putLazy(c change, after slot) {
	j.lazy.put(c)
	j.lazyDigest += after.contribution(c.seq) - c.before.contribution(c.seq)
	if !j.timerSet {
		j.timerSet = true
		j.timer.Reset(flushDelay)
	}
}

// queueLazy queues a change that no caller waits for, as putLazy does, but waits for a commit if too much is queued. If that commit is not written, the change
// is queued again, and this is no error. Only one that may or may not be written (ErrUncertain) is. after is the record's slot (the small part kept in memory)
// after the change. The caller holds mu; queueLazy unlocks it.
func (j *Journal) queueLazy(c change, after slot) error {
	j.putLazy(c, after)
	if len(j.lazy.changes) > lazyMax || j.lazy.bytes > lazyBytesMax {
		j.lazyDue = true
		if err := j.unlockAndAwait(j.collecting); errors.Is(err, persist.ErrUncertain) {
			return err
		}
		return nil
	}
	j.mu.Unlock()
	return nil
}

// flushLazy is called by the timer. From then on, the next commit takes the changes without a waiting caller. If no commit is under way or about to begin
// (leading), flushLazy makes it, on the goroutine of the timer.
func (j *Journal) flushLazy() {
	j.mu.Lock()
	j.lazyDue = true
	if j.closed || j.leading || len(j.lazy.changes) == 0 {
		j.mu.Unlock()
		return
	}
	// No caller waits for this commit, and it waits for none.
	j.leading, j.waiters.soon = true, false
	j.mu.Unlock()
	j.lead()
}

// lead commits the queued changes as one batch, and ends the wait of their callers. Then it hands the next batch to one of the callers waiting for
// it, who calls lead in turn. So there is one commit at a time, and no goroutine of its own for it.
func (j *Journal) lead() {
	j.yieldToJoiners()
	b := j.collecting
	j.take(b)
	// The commit before may have broken the journal while this caller waited.
	if b.err = j.broken; b.err == nil {
		j.mu.Unlock()
		j.place.committing.Lock() // nobody compares the file with the one at its path meanwhile
		err := j.write(b)
		j.place.committing.Unlock()
		j.mu.Lock()
		b.err = err
	}
	j.committing = nil
	j.settle(b)
	j.waiters.release(b.waiters, joinTime(j.syncTime)) // to know if the next commit is to wait for these callers
	j.pass()
	wake := b.wake
	j.mu.Unlock()
	// After mu is given up, or the callers waking up would wait for it at once.
	if wake != nil {
		close(wake)
	}
}

// yieldToJoiners gives other callers the time to add their changes to the batch. It yields the processor as long as several callers come at a time, at most
// yieldMax times; a single one more is not worth another yield. If callers of the last commit are expected back, it waits for them as well, but not if there
// will be no commit (usable). It returns with mu held.
func (j *Journal) yieldToJoiners() {
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
	if wait := joinTime(j.syncTime); wait > 0 && j.waiters.missing() && j.usable() == nil {
		j.waitForJoiners(wait)
	}
}

// joinTime returns how long a commit may wait for further callers to join it, by how long a sync takes: a fifth of that, within bounds. It is 0 for a sync
// below noticeSync: on such a disk a commit is so quick that no wait saves anything.
func joinTime(sync time.Duration) time.Duration {
	if sync < noticeSync {
		return 0
	}
	return min(max(sync/5, joinMin), joinMax)
}

// waitForJoiners waits until all callers served by the last commit are back, for wait at most: half a batch costs as much as a whole one. The last to join
// ends the wait. It blocks instead of yielding, or the scheduler would find work in this goroutine and would not run the others. The caller holds mu, and
// does so on return.
func (j *Journal) waitForJoiners(wait time.Duration) {
	full := make(chan struct{})
	j.waiters.full = full
	j.mu.Unlock()
	late := time.NewTimer(wait)
	select {
	case <-full:
	case <-late.C:
	}
	late.Stop()
	j.mu.Lock()
	j.waiters.full = nil
}

// take makes b the batch (the changes of one commit) that is committed, and an empty batch the one for new changes; that uses the memory of an earlier batch
// (spare) if there is one. Changes without a waiting caller join b if their time has come or there are many. It computes the state entry of the commit as the
// file will have it: the digest (a sum over all records that finds damage), the number of records and the last Seq. The caller holds mu.
func (j *Journal) take(b *batch) {
	if j.lazyDue || len(j.lazy.changes) >= lazyJoin {
		for i := range j.lazy.changes {
			b.put(j.lazy.changes[i])
		}
		j.lazy.reset()
		j.lazyDigest, j.lazyDue, j.timerSet = 0, false, false
	}
	// Memory has the changes still queued, and the file will not have them. The records forgotten by b are
	// in memory, and the file will not have them either.
	b.state = state{
		digest:  j.slots.digest - j.lazyDigest - b.forgottenDigest,
		records: uint64(j.slots.count) - b.forgotten,
		lastSeq: j.seq,
	}
	next := j.spare
	j.spare = nil
	if next == nil {
		next = newQueue()
	}
	j.committing, j.collecting = b, &batch{queue: next}
}

// pass ends the part of a caller that has made a commit for others. It wakes one caller that waits for the next batch, which makes that commit.
// Without one, a goroutine makes it if the time of changes without a waiting caller has come. The caller holds mu.
func (j *Journal) pass() {
	switch next := j.collecting; {
	// One of them takes the value from the channel; the others see it closed later.
	case next.waiters > 0:
		next.wake <- true
	case j.lazyDue && len(j.lazy.changes) > 0 && j.broken == nil:
		// Their time came during the commit just ended.
		go j.lead()
	default:
		j.leading = false
		j.idle.Broadcast()
	}
}

// settle brings the memory in line with the end of a commit. After a success the removed records, and the old IDs of moved ones, leave the indexes. After
// ErrUncertain the journal is broken until it is opened again. After any other error nothing was written, and the changes in memory are undone. The caller
// holds mu.
func (j *Journal) settle(b *batch) {
	switch {
	case b.err == nil:
		j.stats.Commits++
		j.stats.Changes += int64(len(b.changes))
		if b.forgotten > 0 {
			j.removeForgotten(b)
		}
		if b.moved {
			j.removeMoved(b)
		}
		if b.fact != nil {
			j.facts = j.facts.with(b.fact)
		}
		// No reader looks at b any more: readers of b hold mu.
		b.reset()
		j.spare = b.queue
	case errors.Is(b.err, persist.ErrUncertain):
		j.broken = b.err
	default:
		j.undo(b)
	}
}

// uncertain wraps the cause of a commit with an unknown result: it may be durable or not.
func (j *Journal) uncertain(cause error) error {
	return fmt.Errorf("persist/bolt: %s: %w: %w; reopen the journal", j.path, persist.ErrUncertain, cause)
}

// unwritten returns the error of a commit that is surely not in the file, because of cause: its writes had no effect.
func (j *Journal) unwritten(cause error) error {
	return fmt.Errorf("persist/bolt: %s: not written: %w", j.path, cause)
}
