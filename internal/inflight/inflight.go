// Package inflight keeps the calls of operations under way in this process, and the callers waiting for each. A caller
// joins a call under way with its operation, or starts one; it leaves when its own context ends. The call is given up
// when nobody waits any more. The package does not know the work of a call.
package inflight

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
)

// Table holds the calls in flight by operation. [NewTable] makes one. It is safe for concurrent use.
type Table[R any] struct {
	release func(R)       // see NewTable
	numbers atomic.Uint64 // of calls

	mu     sync.Mutex
	calls  map[persist.ID]*Call[R]
	ending map[*Call[R]]bool // answered, and not over
}

// NewTable returns an empty table. release gets the result of each call once the call is over and each of its callers has
// left or called Done.
func NewTable[R any](release func(R)) *Table[R] {
	return &Table[R]{release: release, calls: make(map[persist.ID]*Call[R]), ending: make(map[*Call[R]]bool)}
}

// Entry describes a caller for Enter, and the call to be started by it.
type Entry struct {
	// Record is the operation's. A call started by this caller keeps it.
	Record *persist.Record
	// Context is the caller's. The caller leaves when Context ends; a call started by it has the Context's values.
	Context context.Context
	// Draining ends when a call started by this caller must not wait for another attempt any more.
	Draining context.Context
	// PlainHTTP: the caller sees plain HTTP.
	PlainHTTP bool
	// Client is the caller's. A call started by this caller calls the functions of Client.
	Client any
	// Patience is the longest stay of a call in one function of a user that a wait tolerates. Zero: no bound.
	Patience time.Duration
	// InDoubt: the operation may be of unknown outcome from before. Call.SetInDoubt tells more.
	InDoubt bool
}

// Arrival is the result of Enter for a caller.
type Arrival uint8

const (
	Refused Arrival = iota // a call is under way, and the caller may not join it
	Circle                 // the call to be waited for waits for the caller
	Joined                 // the caller waits for a call started by another caller
	Started                // the caller started a call, and must see to a call of Call.Run
)

// Enter lets a caller join the running call of its operation, or start one, as arrival says. caller is nil for Refused, and for Circle: the caller comes from a
// function that the running call waits for, so its wait would never end. same reports whether the request of the running call is the caller's own; without
// same, the caller joins nobody. The starter does not count as a waiter: its work is the parent of the call's. A call that was given up, or answered
// (closed), is not joined: the next one waits for its end in Run. Of the users of a call's result one is the run itself.
func (t *Table[R]) Enter(e Entry, same func(running *persist.Record) bool) (caller *Caller[R], arrival Arrival) {
	by := From(e.Context) // before the lock: the methods of a context are a user's code
	deadline, bounded := e.Context.Deadline()
	t.mu.Lock()
	defer t.mu.Unlock()
	running := t.calls[e.Record.ID]
	if running != nil && !running.closed {
		if same == nil || !same(running.record) {
			return nil, Refused
		}
		if running.work.await(by) != nil {
			return nil, Circle
		}
		running.everPlain = running.everPlain || e.PlainHTTP
		caller = running.admit(e, by)
		caller.deadline, caller.bounded = deadline, bounded
		return caller, Joined
	}
	call := &Call[R]{
		doing: doing{number: t.Number(), draining: e.Draining}, table: t, record: e.Record, previous: running,
		everPlain: e.PlainHTTP, inDoubt: e.InDoubt, waits: running != nil, users: 1, done: make(chan struct{}),
	}
	call.work.parent, call.work.client = by, e.Client
	call.values = guest{endless(e.Context), &call.work}
	call.patience = e.Patience
	if running != nil && running.work.await(&call.work) != nil {
		return nil, Circle
	}
	call.ctx, call.cancel = context.WithCancelCause(&call.values)
	t.calls[e.Record.ID] = call
	caller = call.admit(e, nil)
	caller.first, caller.deadline, caller.bounded = true, deadline, bounded
	return caller, Started
}

// endless returns a context that never ends, with the values of ctx.
func endless(ctx context.Context) context.Context {
	if ctx == context.Background() { // it costs nothing
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// admit adds a caller to the call, and counts one more use of its result. by is the work that waits for the call through this caller, or nil. The
// caller holds table.mu.
func (c *Call[R]) admit(e Entry, by *Work) *Caller[R] {
	caller := &Caller[R]{call: c, ctx: e.Context, by: by, patience: e.Patience, plain: e.PlainHTTP, next: c.callers}
	c.callers = caller
	c.users++
	return caller
}

// Number returns a number for a call that is not in the table. No other call gets it.
func (t *Table[R]) Number() uint64 { return t.numbers.Add(1) }

// Running reports whether a call is under way with the operation. inDoubt is true if the operation was in doubt before, or
// a caller has left that call unsure.
func (t *Table[R]) Running(id persist.ID) (running, inDoubt bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	call := t.calls[id]
	return call != nil, call != nil && (call.inDoubt || call.left)
}

// Operation returns the record of the call that runs in this process for this ID; nil if there is none.
func (t *Table[R]) Operation(id persist.ID) *persist.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	if call := t.calls[id]; call != nil {
		return call.record
	}
	return nil
}

// Ended waits for the end of answered calls that still write their records, of the operations selected by pick. patience is as in Entry. Errors: the
// cause of ctx, ErrCircle if the wait would never end, ErrGuest if a function of the program takes too long.
func (t *Table[R]) Ended(ctx context.Context, patience time.Duration, pick func(persist.ID) bool) error {
	t.mu.Lock()
	var answered []*Call[R]
	for call := range t.ending {
		if pick(call.record.ID) {
			answered = append(answered, call)
		}
	}
	t.mu.Unlock()
	by := From(ctx)
	for _, call := range answered {
		if err := call.work.await(by); err != nil {
			return err
		}
		err := call.work.wait(ctx, patience, call.ending)
		call.work.leave(by)
		if err != nil {
			return err
		}
	}
	return nil
}

// Ending returns the number of calls whose callers have their answer while the record is still being written.
func (t *Table[R]) Ending() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ending)
}

// Len returns the number of operations that run in this process.
func (t *Table[R]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

// GiveUpDraining cancels all calls of a client whose time for draining (ending what runs at Close) is over.
func (t *Table[R]) GiveUpDraining(client any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, call := range t.calls {
		if cause := sanitize.Cause(call.draining); cause != nil && call.work.client == client {
			call.cancel(cause)
		}
	}
}

// Caller is one caller's place in a call.
type Caller[R any] struct {
	call  *Call[R]
	ctx   context.Context
	first bool // it started the call
	plain bool

	deadline time.Time // of ctx
	bounded  bool      // ctx has a deadline

	until    context.Context // see Until; nil: no other end
	by       *Work           // the work that waits for another's call through this caller; nil: none
	patience time.Duration

	// Under table.mu.
	next *Caller[R] // of the same call
	gone bool       // it uses the result no more
}

// Call returns the caller's call.
func (c *Caller[R]) Call() *Call[R] { return c.call }

// Joined reports whether another caller started the call.
func (c *Caller[R]) Joined() bool { return !c.first }

// Done ends the caller's use of the result. It is called after Wait has returned one, or, by a caller that has run the call
// itself, when it needs the result no more. A second Done does nothing. c.by is the work that waits through this caller, and now waits no more.
func (c *Caller[R]) Done() {
	c.call.table.mu.Lock()
	gone := c.gone
	c.gone = true
	c.call.table.mu.Unlock()
	c.call.work.leave(c.by)
	if !gone {
		c.call.letGo()
	}
}

// Wait returns the result of the call. If the caller's context ends first, the caller leaves, and err is the
// context's cause. A joined caller also leaves if the call stays in a function of the user for longer than the caller's
// patience; then err is ErrGuest. The last caller to leave gives the call up, and waits for its result all the same, to
// learn the outcome. It does not wait if the call still waits for the one before: then the call runs nothing. The caller
// that started the call waits for the result, too, once Call.Recording was called. A panic of the call goes on in the
// caller that started it.
func (c *Caller[R]) Wait() (result R, err error) {
	if err := c.Await(); err != nil {
		return result, err
	}
	if c.first && c.call.panicked != nil {
		panic(c.call.panicked)
	}
	return c.call.result, nil
}

// Await waits for the call, and returns nil once the result is there, also after a panic. The caller that started the call has no bound of patience. The last
// caller to leave waits for the result all the same, unless the call runs nothing, until has ended, or patience is over. An error means that the caller has
// left without a result: its context has ended, its patience is over, or the wait would never end.
func (c *Caller[R]) Await() error {
	patience := c.patience
	if c.first {
		patience = 0
	}
	ctx := c.ctx
	if c.until != nil {
		within, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(c.until, func() { cancel(sanitize.Cause(c.until)) })()
		ctx = within
	}
	err := c.call.work.wait(ctx, patience, c.call.done)
	if err == nil {
		return nil
	}
	stays, untilEnded := c.leave(), c.until != nil && c.until.Err() != nil
	if !c.call.over() && (!stays || untilEnded || err == ErrGuest || c.call.abandon()) {
		c.Done()
		return err
	}
	<-c.call.done
	return nil
}

// Until lets a joined caller leave when ctx ends, with the cause of ctx, as when its own context ends. If the caller is the
// last one, it does not wait for the result. Until is called before Wait.
func (c *Caller[R]) Until(ctx context.Context) { c.until = ctx }

// Leave takes the caller out of the call without a result. If nobody is left, the call is cancelled.
func (c *Caller[R]) Leave() {
	if !c.leave() {
		c.Done()
	}
}

// leave removes a caller that may still use the result. stays is true if it must wait for the result: nobody else is left and the call is given up, or it
// started the call and the end is being recorded (recording). Then it stays in the list, so that PlainHTTP and Deadline still count it.
func (c *Caller[R]) leave() (stays bool) {
	call, cause := c.call, sanitize.Cause(c.ctx)
	if cause == nil && c.until != nil {
		cause = sanitize.Cause(c.until)
	}
	call.table.mu.Lock()
	defer call.table.mu.Unlock()
	if call.callers == c && c.next == nil {
		call.closed = true
		call.cancel(cause)
		return true
	}
	if c.first && call.recording {
		return true
	}
	call.left, call.firstLeft = true, call.firstLeft || c.first
	for at := &call.callers; *at != nil; at = &(*at).next {
		if *at == c {
			*at = c.next
			break
		}
	}
	return false
}
