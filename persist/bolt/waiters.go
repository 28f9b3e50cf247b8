package bolt

import "time"

// waiters counts the callers waiting for a commit, and decides if the next commit should wait for the
// callers served by the last one. It should only if, the time before, as many were back soon. So a wait in
// vain is not repeated, and callers busy with something else between two commits are never waited for.
//
// The zero value is ready. The journal's mu guards it.
type waiters struct {
	now   int           // how many wait, for the commit under way or for the next
	last  int           // how many waited when the last commit ended, those it served included
	since time.Time     // when the last commit ended
	back  time.Duration // how long it took until as many waited again; 0: they do not yet
	soon  bool          // the time before, at least as many were back in time
	full  chan struct{} // closed when as many wait again, if a commit waits for this
}

// join counts one more waiting caller. If as many wait now as when the last commit ended, it notes how long that took (back), and wakes a commit that waits
// for it.
func (w *waiters) join() {
	w.now++
	if w.now != w.last || w.back != 0 {
		return
	}
	w.back = max(time.Since(w.since), 1)
	if w.full != nil {
		close(w.full)
	}
}

// release ends a commit that has served served callers. It notes how many wait now, and if the callers of the last commit came back within wait, the longest
// worthwhile wait: then missing has the next commit wait for them.
func (w *waiters) release(served int, wait time.Duration) {
	w.soon = w.back != 0 && w.back <= wait && w.now <= w.last
	w.last, w.since, w.back = w.now, time.Now(), 0
	w.now -= served
}

// missing reports whether the next commit should wait a moment: fewer callers wait than for the last one, and they are expected back.
func (w *waiters) missing() bool { return w.soon && w.now < w.last }
