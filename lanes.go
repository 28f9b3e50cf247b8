package oncehttp

import (
	"context"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// lanes are the operations that a Run has claimed and not begun yet, a queue for each origin, and how many of each origin
// its workers run. Half of what is taken may send at a time: meanwhile the journal writes the beginning and the end of
// the others. A worker takes from the origin of which the fewest are running, and no origin has more than its share
// of the workers, so that a slow one does not keep others from their turn. They are safe for concurrent use.
type lanes struct {
	workers int           // all that take
	limit   int           // of operations of one origin that run at once
	wanted  chan struct{} // gets a value when it is time to claim more

	mu      sync.Mutex
	work    *sync.Cond // on mu: for those that wait in take
	of      map[string]*lane
	queued  int // in all lanes
	sending int // in all lanes
	lent    int // in all lanes
	share   int // of operations of one origin that run at once, at present
	closed  bool
}

// lane is what a Run has of one origin.
type lane struct {
	queue   []queuedRecord
	running int        // taken and not done
	sending int        // of these
	lent    int        // of these: they have lent their turn, while they are in a function of the user
	parked  int        // of these: they wait for a limiter, most without an operation
	blocked bool       // what was queued was given back, and nothing has moved since
	turn    *sync.Cond // on lanes.mu: for those that wait in enter
	waiting int        // how many wait for turn, and were not woken
}

// queuedRecord is one that was put and not taken yet.
type queuedRecord struct {
	rec *persist.Record
	put time.Time
}

// newLanes returns empty lanes.
func newLanes(workers, limit int) *lanes {
	l := &lanes{workers: workers, limit: limit, share: limit, wanted: make(chan struct{}, 1), of: map[string]*lane{}}
	l.work = sync.NewCond(&l.mu)
	return l
}

// put queues records, for which there was room. It does not wait, and returns false if the lanes are closed.
func (l *lanes) put(records []*persist.Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	now := time.Now()
	for _, rec := range records {
		at := l.of[rec.Origin]
		if at == nil {
			at = &lane{turn: sync.NewCond(&l.mu)}
			l.of[rec.Origin] = at
		}
		at.queue = append(at.queue, queuedRecord{rec, now})
		l.queued++
		l.work.Signal()
	}
	return true
}

// take waits for a record that may be run now. Whoever takes one calls done. more is false once the lanes are closed.
func (l *lanes) take() (rec *persist.Record, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// next is the lane of which the fewest operations are running, among those that have one to run; nil if none has. The
// caller holds mu.
func (l *lanes) next() (best *lane) {
	for _, at := range l.of {
		if len(at.queue) > 0 && at.running < l.share && (best == nil || at.running < best.running) {
			best = at
		}
	}
	return best
}

// enter waits until an operation that was taken may send: half of those that run may, so that the journal writes the
// beginning and the end of the others meanwhile. Whoever entered calls leave. Error: the cause of the context.
func (l *lanes) enter(ctx context.Context, origin string) error {
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wakeAll()
	})()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[origin]
	for ctx.Err() == nil && !l.maySend(at) {
		l.wakeNext() // who was woken in vain hands on what woke it
		at.waiting++
		at.turn.Wait()
	}
	if ctx.Err() != nil {
		l.wakeNext() // it may have been woken for a turn that it does not use
		return context.Cause(ctx)
	}
	at.sending++
	l.sending++
	return nil
}

// maySend reports whether one more operation of a lane may send. The caller holds mu.
func (l *lanes) maySend(at *lane) bool {
	return l.sending < max(l.workers/2, 1) && at.sending < max(l.share/2, 1)
}

// wakeNext wakes one that waits in enter and may send, of the origin of which the fewest are sending. The end of one send lets
// one other begin, so that nobody else need look. The caller holds mu.
func (l *lanes) wakeNext() {
	var next *lane
	for _, at := range l.of {
		if at.waiting > 0 && l.maySend(at) && (next == nil || at.sending < next.sending) {
			next = at
		}
	}
	if next != nil {
		next.waiting--
		next.turn.Signal()
	}
}

// wakeAll wakes all that wait in enter. The caller holds mu.
func (l *lanes) wakeAll() {
	for _, at := range l.of {
		at.waiting = 0
		at.turn.Broadcast()
	}
}

// leave says that an operation that entered has its answer.
func (l *lanes) leave(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[origin].sending--
	l.sending--
	l.wakeNext()
}

// done says that an operation of an origin runs no more.
func (l *lanes) done(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[origin]
	at.running--
	at.blocked = false
	has := at.running + len(at.queue)
	if has == 0 {
		delete(l.of, origin)
	}
	l.work.Signal()
	if l.low(has) {
		select {
		case l.wanted <- struct{}{}:
		default:
		}
	}
}

// low reports whether it is time to claim more of an origin that has so many operations here: a quarter of what it may have
// is free, so that a claim, which costs the journal as much as many changes, is of several. The caller holds mu.
func (l *lanes) low(has int) bool { return 2*has <= 3*l.share }

// divide gives each of so many origins an equal share of the workers, one at least.
func (l *lanes) divide(origins int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if share := min((l.workers+origins-1)/max(origins, 1), l.limit); share != l.share {
		l.share = max(share, 1)
		l.work.Broadcast()
		l.wakeAll()
	}
}

// room is how many more operations of an origin may be claimed, if it is low: its share, and as many to go on with. claimed
// are those of all origins that are claimed and not put yet.
func (l *lanes) room(origin string, claimed int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	has := 0
	at := l.of[origin]
	if at != nil {
		has = at.running + len(at.queue)
	}
	if !l.low(has) || l.lent >= l.workers || at != nil && (at.blocked || at.parked > 0) {
		return 0
	}
	return max(min(2*l.share-has, 2*l.workers-l.queued-claimed), 0)
}

// full reports whether there is no room for any origin. claimed are as in room.
func (l *lanes) full(claimed int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued+claimed >= 2*l.workers
}

// active is how many origins have operations here that are not among these.
func (l *lanes) active(but map[string][]string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for origin := range l.of {
		if but[origin] == nil {
			n++
		}
	}
	return n
}

// shut ends all waits. Nothing is put or taken any more.
func (l *lanes) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.work.Broadcast()
}

// close is shut, and returns what was not taken.
func (l *lanes) close() (left []*persist.Record) {
	l.shut()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.of {
		left = append(left, l.unqueue(at, len(at.queue))...)
	}
	return left
}
