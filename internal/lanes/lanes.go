// Package lanes gives each origin its share of the workers of a Run, and its turns to send.
package lanes

import (
	"context"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Lanes hold the claimed operations of a Run: a queue for each origin, and the number of its running operations. A
// worker takes from the origin with the fewest running operations. No origin has more than its share of the workers, so
// a slow one does not delay the others. Half of the running operations may send at a time; meanwhile the journal writes
// the others. Lanes are safe for concurrent use.
type Lanes struct {
	workers int           // all workers
	limit   int           // of running operations of one origin
	Wanted  chan struct{} // gets a value when it is time to claim more

	mu      sync.Mutex       // guards the fields below, and those of each lane
	work    *sync.Cond       // on mu: for waits in Take
	of      map[string]*lane // by origin; only with queued, running or parked operations
	queued  int              // in all lanes
	sending int              // in all lanes
	lent    int              // in all lanes
	share   int              // the largest number of running operations of one origin, at present
	closed  bool             // by Shut
}

// Turns bound the sends of operations at the same time.
type Turns interface {
	// Enter waits until an operation of an origin may send. Leave follows, except after an error. The error is the
	// cause of ctx.
	Enter(ctx context.Context, origin string) error
	// Leave notes the answer of an entered operation.
	Leave(origin string)
	// Lend gives the turn of an entered operation to another, until TakeBack.
	Lend(origin string)
	TakeBack(origin string)
	// Park notes an operation given back during its limiter's wait, until Unpark. Nothing of its origin is claimed meanwhile.
	Park(origin string)
	Unpark(origin string)
}

// Free are turns without a bound.
type Free struct{}

func (Free) Enter(context.Context, string) error { return nil }
func (Free) Leave(string)                        {}
func (Free) Lend(string)                         {}
func (Free) TakeBack(string)                     {}
func (Free) Park(string)                         {}
func (Free) Unpark(string)                       {}

// lane is the part of one origin.
type lane struct {
	queue   []queuedRecord
	running int        // taken and not done
	sending int        // of these
	lent    int        // of these: they have lent their turn, while they are in a function of the user
	parked  int        // of these: they wait for a limiter, most without an operation
	blocked bool       // the queue was given back, and nothing has moved since
	turn    *sync.Cond // on Lanes.mu: for waits in Enter
	waiting int        // the number of waits for turn, without those already woken
}

// queuedRecord is a record between Put and Take.
type queuedRecord struct {
	rec *persist.Record
	put time.Time
}

// New returns empty lanes for this number of workers. limit is the largest number of running operations of one
// origin; both are at least 1.
func New(workers, limit int) *Lanes {
	l := &Lanes{workers: workers, limit: limit, share: limit, Wanted: make(chan struct{}, 1), of: map[string]*lane{}}
	l.work = sync.NewCond(&l.mu)
	return l
}

// Put queues records, and does not wait. The caller has asked Room before. After false, which follows Shut,
// nothing is queued and the caller still has the records.
func (l *Lanes) Put(records []*persist.Record) bool {
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

// Take waits for a record with room to run, and counts it as running: Done must follow. more is false after Shut;
// rec is then nil.
func (l *Lanes) Take() (rec *persist.Record, more bool) {
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

// next returns the lane (the part of one origin) with the fewest running operations, among those that have queued ones and may run more; nil if there
// is none. The caller holds mu.
func (l *Lanes) next() (best *lane) {
	for _, at := range l.of {
		if len(at.queue) > 0 && at.running < l.share && (best == nil || at.running < best.running) {
			best = at
		}
	}
	return best
}

// Enter implements Turns: it waits until an operation may send to origin. The operation was taken by Take and is not done. After nil it has a turn, which Leave
// gives back; after an error, the cause of ctx, it has none. At most half of the running operations have one: meanwhile the journal begins and ends the others.
// Whoever wakes a wait takes it off at.waiting.
func (l *Lanes) Enter(ctx context.Context, origin string) error {
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wakeAll()
	})()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[origin]
	for ctx.Err() == nil && !l.maySend(at) {
		l.wakeNext() // a wait woken in vain passes the wake-up on
		at.waiting++
		at.turn.Wait()
	}
	if ctx.Err() != nil {
		l.wakeNext() // it may have been woken for an unused turn
		return context.Cause(ctx)
	}
	at.sending++
	l.sending++
	return nil
}

// maySend reports whether one more operation of a lane may send. The caller holds mu.
func (l *Lanes) maySend(at *lane) bool {
	return l.sending < max(l.workers/2, 1) && at.sending < max(l.share/2, 1)
}

// wakeNext wakes one waiting operation with the right to send, of the origin with the fewest sending ones. Each end of
// a send lets one other begin, so one is enough. The caller holds mu.
func (l *Lanes) wakeNext() {
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

// wakeAll wakes all operations that wait in Enter for their turn to send. The caller holds mu.
func (l *Lanes) wakeAll() {
	for _, at := range l.of {
		at.waiting = 0
		at.turn.Broadcast()
	}
}

// Leave implements Turns: an operation to this origin has sent, and gives its turn to the next one.
func (l *Lanes) Leave(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[origin].sending--
	l.sending--
	l.wakeNext()
}

// Done notes the end of an operation to an origin. It is called once after each Take. It sends to Wanted if few operations of the origin are left
// here, so that more can be claimed.
func (l *Lanes) Done(origin string) {
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
		case l.Wanted <- struct{}{}:
		default:
		}
	}
}

// low reports whether more should be claimed of an origin with so many operations here. It waits until a quarter of its share is free: a claim
// costs the journal as much as many changes, and should bring several records. The caller holds mu.
func (l *Lanes) low(has int) bool { return 2*has <= 3*l.share }

// Divide gives each of so many origins an equal share of the workers, between one and the limit of New. Running
// operations over a smaller share go on.
func (l *Lanes) Divide(origins int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if share := min((l.workers+origins-1)/max(origins, 1), l.limit); share != l.share {
		l.share = max(share, 1)
		l.work.Broadcast()
		l.wakeAll()
	}
}

// Room returns the number of operations to claim of an origin; zero if it has enough, or its workers wait for
// functions of the user. claimed is the number of claimed records of all origins before Put.
func (l *Lanes) Room(origin string, claimed int) int {
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

// Full reports whether no origin may get more operations. claimed is the number of the claimed operations that were not added yet.
func (l *Lanes) Full(claimed int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued+claimed >= 2*l.workers
}

// Active returns the number of origins that have operations here, without those in the map.
func (l *Lanes) Active(but map[string][]string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.work.Broadcast()
}

// Close ends the waits for operations, as Shut does, and returns the records that were queued and not taken: the caller gives them back to the
// journal.
func (l *Lanes) Close() (left []*persist.Record) {
	l.Shut()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.of {
		left = append(left, l.unqueue(at, len(at.queue))...)
	}
	return left
}
