package lanes

import (
	"context"
	"sync"

	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// Turns bound the sends of operations at the same time.
type Turns interface {
	// Enter waits until an operation of an origin may send. Leave follows, except after an error. The error is the
	// cause of ctx.
	Enter(ctx context.Context, origin string) error
	// Leave notes the answer of an entered operation.
	Leave(origin string)
	// Lend gives the turn of an entered operation to another, until TakeBack.
	Lend(origin string)
	// TakeBack ends a Lend. It follows before Leave.
	TakeBack(origin string)
	// Park notes an operation given back during its limiter's wait, until Unpark. Nothing of its origin is claimed meanwhile.
	Park(origin string)
	// Unpark ends a Park. It follows once for each.
	Unpark(origin string)
}

// Free are turns without a bound.
type Free struct{}

// Enter implements Turns. It does not wait: each operation may send at once.
func (Free) Enter(context.Context, string) error { return nil }

// Leave implements Turns. It does nothing: no send waits for a turn, the permission to send.
func (Free) Leave(string) {}

// Lend implements Turns. It does nothing: no send waits for a turn, the permission to send.
func (Free) Lend(string) {}

// TakeBack implements Turns. It does nothing: no send waits for a turn, the permission to send.
func (Free) TakeBack(string) {}

// Park implements Turns. It does nothing: no send waits for a turn.
func (Free) Park(string) {}

// Unpark implements Turns. It does nothing: no send waits for a turn.
func (Free) Unpark(string) {}

// turns are those of lanes. Half of the workers may send at the same time, and half of the share of one origin: meanwhile the journal begins and
// ends the others. A turn is for a running operation of its origin. turns are safe for concurrent use.
type turns struct {
	workers int // all workers

	mu      sync.Mutex        // guards the fields below, those of each sends, and the lanes
	of      map[string]*sends // by origin; for each lane
	sending int               // of all origins
	lent    int               // of all origins
	share   int               // the largest number of running operations of one origin, at present
}

// sends are those of the running operations of one origin.
type sends struct {
	under   int        // operations with a turn
	lent    int        // operations that have lent their turn, while they are in a function of the user
	parked  int        // operations that wait for a limiter
	blocked bool       // the queue of the origin was given back, and no operation has moved since
	turn    *sync.Cond // on turns.mu: for waits in Enter
	waiting int        // the number of waits for turn, without those already woken
}

// add adds an origin without sends. The caller holds mu.
func (t *turns) add(origin string) *sends {
	at := &sends{turn: sync.NewCond(&t.mu)}
	t.of[origin] = at
	return at
}

// Enter implements Turns. It waits until an operation may send to origin. The operation must have been taken by Lanes.Take and not be done. After nil it has a
// turn, and Leave must give the turn back. After an error, the cause of ctx, it has none. The end of ctx wakes all waits: each looks at its own context.
func (t *turns) Enter(ctx context.Context, origin string) error {
	defer context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.wakeAll()
	})()
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[origin]
	for ctx.Err() == nil && !t.maySend(at) {
		t.wakeNext() // a wait woken in vain passes the wake-up on
		at.waiting++
		at.turn.Wait()
	}
	if ctx.Err() != nil {
		t.wakeNext() // it may have been woken for an unused turn
		return sanitize.Cause(ctx)
	}
	at.under++
	t.sending++
	return nil
}

// maySend reports whether one more operation of an origin may send now: of all workers, and of the origin's share, fewer than half are sending. Meanwhile the
// journal can begin and end the others. The caller holds mu.
func (t *turns) maySend(at *sends) bool {
	return t.sending < max(t.workers/2, 1) && at.under < max(t.share/2, 1)
}

// wakeNext wakes one waiting operation with the right to send, of the origin with the fewest sending ones. Each end of
// a send lets one other begin, so one is enough. waiting counts those not woken yet. The caller holds mu.
func (t *turns) wakeNext() {
	var next *sends
	for _, at := range t.of {
		if at.waiting > 0 && t.maySend(at) && (next == nil || at.under < next.under) {
			next = at
		}
	}
	if next != nil {
		next.waiting--
		next.turn.Signal()
	}
}

// wakeAll wakes all operations that wait in Enter for their turn to send. One that has to wait on counts itself in waiting again. The caller holds mu.
func (t *turns) wakeAll() {
	for _, at := range t.of {
		at.waiting = 0
		at.turn.Broadcast()
	}
}

// Leave implements Turns: an operation to this origin has sent, and gives its turn to the next one.
func (t *turns) Leave(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[origin].under--
	t.sending--
	t.wakeNext()
}

// Lend implements Turns: an operation that has its turn to send calls a function of the program, which may take long, and lends the turn to others meanwhile:
// it counts as lent, and not as sending (under).
func (t *turns) Lend(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[origin]
	at.lent++
	t.lent++
	at.under--
	t.sending--
	t.wakeNext()
}

// TakeBack implements Turns: the operation has its turn again. More may be claimed for its origin again (blocked is false). It does not wait for the turn: for
// a while more operations may send than there are turns.
func (t *turns) TakeBack(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[origin]
	at.blocked = false
	at.lent--
	t.lent--
	at.under++
	t.sending++
}

// Park implements Turns: an operation to this origin waits for the program's limiter, and no more operations of the origin are claimed meanwhile.
func (t *turns) Park(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[origin].parked++
}

// Unpark implements Turns: an operation that waited for the limiter goes on, or has ended. More may be claimed for its origin again (blocked is false).
func (t *turns) Unpark(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[origin]
	at.parked--
	at.blocked = false
}
