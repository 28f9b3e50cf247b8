// Package lanes gives each origin its share of the workers of a Run, and its turns to send.
package lanes

import (
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Lanes hold the claimed operations of a Run: a queue for each origin, and the number of its running operations. A
// worker takes from the origin with the fewest running operations. No origin has more than its share of the workers, so
// a slow one does not delay the others. Half of the running operations may send at a time; meanwhile the journal writes
// the others. Lanes are safe for concurrent use.
type Lanes struct {
	limit  int           // of running operations of one origin
	Wanted chan struct{} // gets a value when it is time to claim more
	turns  *turns        // of the running operations; its mu guards the fields below, and those of each lane

	work   *sync.Cond       // on turns.mu: for waits in Take
	of     map[string]*lane // by origin; only with queued, running or parked operations
	queued int              // in all lanes
	closed bool             // by Shut
}

// lane is the part of one origin.
type lane struct {
	queue   []queuedRecord
	running int    // taken and not done
	sends   *sends // of these
}

// queuedRecord is a record between Put and Take.
type queuedRecord struct {
	rec *persist.Record
	put time.Time
}

// New returns empty lanes, the queues of claimed operations, one for each origin. workers is the number of operations that can run at a time, and limit the largest
// number of one origin; both are at least 1.
func New(workers, limit int) *Lanes {
	t := &turns{workers: workers, share: limit, of: map[string]*sends{}}
	return &Lanes{limit: limit, Wanted: make(chan struct{}, 1), turns: t, work: sync.NewCond(&t.mu), of: map[string]*lane{}}
}

// Turns returns the permissions to send for the running operations: as many as half of the workers may send at a time.
func (l *Lanes) Turns() Turns { return l.turns }

// Put queues records, and does not wait. The caller has asked Room before. After false, which follows Shut,
// nothing is queued and the caller still has the records.
func (l *Lanes) Put(records []*persist.Record) bool {
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	if l.closed {
		return false
	}
	now := time.Now()
	for _, rec := range records {
		at := l.of[rec.Origin]
		if at == nil {
			at = &lane{sends: l.turns.add(rec.Origin)}
			l.of[rec.Origin] = at
		}
		at.queue = append(at.queue, queuedRecord{rec, now})
		l.queued++
		l.work.Signal()
	}
	return true
}

// Take waits for a queued record of an origin that may run one more, and counts it as running: Done must follow. more is false after Shut; rec is
// then nil.
func (l *Lanes) Take() (rec *persist.Record, more bool) {
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	for !l.closed {
		if at := l.next(); at != nil {
			rec, at.queue = at.queue[0].rec, at.queue[1:]
			at.running++
			l.queued--
			return rec, true
		}
		l.work.Wait()
	}
	return nil, false
}

// next returns the lane (the part of one origin) with the fewest running operations, among those that have queued ones and may run more; nil if there
// is none. The caller holds turns.mu.
func (l *Lanes) next() (best *lane) {
	for _, at := range l.of {
		if len(at.queue) > 0 && at.running < l.turns.share && (best == nil || at.running < best.running) {
			best = at
		}
	}
	return best
}

// Done notes the end of an operation to an origin. More may be claimed for the origin again, if Overdue has stopped that (blocked). It is called once after
// each Take. It sends to Wanted if few operations of the origin are left here, so that more can be claimed.
func (l *Lanes) Done(origin string) {
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	at := l.of[origin]
	at.running--
	at.sends.blocked = false
	has := at.running + len(at.queue)
	if has == 0 {
		l.forget(origin)
	}
	l.work.Signal()
	if l.low(has) {
		select {
		case l.Wanted <- struct{}{}:
		default:
		}
	}
}

// low reports whether more operations of an origin should be claimed. has is the number of its operations in the lanes, at most twice its share. It is true
// once a quarter of that is free: a claim costs the journal as much as many changes, and should bring several records. The caller holds turns.mu.
func (l *Lanes) low(has int) bool { return 2*has <= 3*l.turns.share }

// forget removes an origin without operations. The caller holds turns.mu.
func (l *Lanes) forget(origin string) {
	delete(l.of, origin)
	delete(l.turns.of, origin)
}

// Divide gives each of origins origins an equal share of the workers, between one and the limit of New. The share is rounded up. Operations that run already go
// on, even beyond a smaller share.
func (l *Lanes) Divide(origins int) {
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	if share := min((l.turns.workers+origins-1)/max(origins, 1), l.limit); share != l.turns.share {
		l.turns.share = max(share, 1)
		l.work.Broadcast()
		l.turns.wakeAll()
	}
}

// Room returns the number of operations of an origin that may be claimed now: up to twice its share, and twice the workers in all. It is zero if the origin has
// enough, if all workers wait in functions of the program (lent: they have lent their turns to send), if some of its operations wait for a limiter (parked), or if
// Overdue has given some back (blocked). claimed is the number of records of all origins that are claimed and not yet queued.
func (l *Lanes) Room(origin string, claimed int) int {
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	has := 0
	at := l.of[origin]
	if at != nil {
		has = at.running + len(at.queue)
	}
	if !l.low(has) || l.turns.lent >= l.turns.workers || at != nil && (at.sends.blocked || at.sends.parked > 0) {
		return 0
	}
	return max(min(2*l.turns.share-has, 2*l.turns.workers-l.queued-claimed), 0)
}

// Full reports whether no origin may get more operations. claimed is the number of the claimed operations that were not added yet.
func (l *Lanes) Full(claimed int) bool {
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	return l.queued+claimed >= 2*l.turns.workers
}

// Active returns the number of origins that have operations here, without those in the map: the caller counts them itself.
func (l *Lanes) Active(but map[string][]string) (n int) {
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	for origin := range l.of {
		if but[origin] == nil {
			n++
		}
	}
	return n
}

// Shut ends the waits in Take. Nothing is put or taken after it. Running operations still enter, leave and end. It
// may be called again.
func (l *Lanes) Shut() {
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	l.closed = true
	l.work.Broadcast()
}

// Close ends the waits for operations, as Shut does, and returns the records that were queued and not taken: the caller gives them back to the
// journal.
func (l *Lanes) Close() (left []*persist.Record) {
	l.Shut()
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	for _, at := range l.of {
		left = append(left, l.unqueue(at, len(at.queue))...)
	}
	return left
}

// Overdue removes and returns the records that have been queued for age or longer behind operations which wait in a function or a limiter of the user: those of
// their own origin, or all workers. The caller gives up its claims on them in the journal, so that other processes can send them. Such an origin takes no new
// ones until an operation moves on (blocked). An operation lends its turn to send while it is in a function (lent), and is parked while it waits for a limiter.
func (l *Lanes) Overdue(age time.Duration) (left []*persist.Record) {
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	for origin, at := range l.of {
		if at.sends.lent == 0 && at.sends.parked == 0 && l.turns.lent < l.turns.workers {
			continue
		}
		n := 0
		for n < len(at.queue) && time.Since(at.queue[n].put) >= age {
			n++
		}
		if n == 0 {
			continue
		}
		left = append(left, l.unqueue(at, n)...)
		at.sends.blocked = true
		if at.running+len(at.queue) == 0 {
			l.forget(origin)
		}
	}
	return left
}

// unqueue removes the first n records from the queue of an origin, and returns them. The caller holds turns.mu.
func (l *Lanes) unqueue(at *lane, n int) (first []*persist.Record) {
	for _, queued := range at.queue[:n] {
		first = append(first, queued.rec)
	}
	at.queue = at.queue[n:]
	l.queued -= n
	return first
}
