package inflight

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
)

// Call is one run of an operation, with the callers waiting for its result. Its methods are safe for concurrent
// use; Run is called once.
type Call[R any] struct {
	doing
	table    *Table[R]
	record   *persist.Record
	previous *Call[R] // the call of the same operation, given up or answered and not over yet; nil if none
	patience time.Duration

	// Under table.mu.
	callers   *Caller[R] // a list through Caller.next
	closed    bool       // over, given up or answered: nobody joins any more
	everPlain bool
	inDoubt   bool
	ended     bool
	firstLeft bool // the caller that started the call has left
	left      bool // a caller has left, and was told of an unknown outcome
	waits     bool // for the end of previous: nothing was run yet
	abandoned bool // everybody left while it waited: it runs nothing
	recording bool // see Recording
	users     int  // of the result: the run, and the callers that are not gone

	// Written before done is closed; once done is closed, the result is there.
	result R
	panics
	ending chan struct{} // of an answered call: closed when it is over; else nil
	done   chan struct{}
}

// doing is a call as its run sees it: its work, its contexts and its sends.
type doing struct {
	number   uint64
	work     Work
	values   guest
	ctx      context.Context
	cancel   context.CancelCauseFunc
	draining context.Context
	sends    atomic.Int64
}

// panics holds the panics of a call.
type panics struct {
	panicked any
	late     any // see PanickedLate
}

// Number returns the number of the call in its table, from 1 on.
func (d *doing) Number() uint64 { return d.number }

// Work returns the call as a piece of work, so that waits in a circle are found. Calls made inside its functions of the program, such as Config.Authorize, are known
// to be waited for by it, and others may wait for it.
func (d *doing) Work() *Work { return &d.work }

// Values returns a context for functions of the user during the call. It has the values of the caller that started the call, and it names the call as
// the work that waits for them. It never ends: other callers may wait for the call, too.
func (d *doing) Values() context.Context { return &d.values }

// Context returns a context with the values of the caller that started the call. It ends when the call is given up, with the reason as its cause.
func (d *doing) Context() context.Context { return d.ctx }

// Draining returns a context that ends when the client closes: the call must then begin no further attempt. An attempt on the wire goes on.
func (d *doing) Draining() context.Context { return d.draining }

// PlainHTTP reports whether one of the callers that wait sees plain HTTP (it uses the client as an http.RoundTripper), and whether one ever did. A
// Call is one operation that runs in this process, with the callers that wait for it.
func (c *Call[R]) PlainHTTP() (is, was bool) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	for caller := c.callers; caller != nil; caller = caller.next {
		is = is || caller.plain
	}
	return is, c.everPlain
}

// Deadline returns the latest deadline of the callers that wait; zero if one of them has none.
func (c *Call[R]) Deadline() time.Time {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	var latest time.Time
	for caller := c.callers; caller != nil; caller = caller.next {
		if !caller.bounded {
			return time.Time{}
		}
		if caller.deadline.After(latest) {
			latest = caller.deadline
		}
	}
	return latest
}

// SetInDoubt notes whether the outcome of the operation is unknown: an earlier send had no answer, or this run of it has ended without a known end.
func (c *Call[R]) SetInDoubt(inDoubt bool) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.inDoubt = inDoubt
}

// SetSends sets the number of sends of the call, with those being made.
func (d *doing) SetSends(n int) { d.sends.Store(int64(n)) }

// Sends returns the number of sends of the call, as set last by SetSends.
func (d *doing) Sends() int { return int(d.sends.Load()) }

// GiveUp ends the call's Context, as if all callers had left because of cause.
func (d *doing) GiveUp(cause error) { d.cancel(cause) }

// Panicked returns the value of the call's panic, once the call is over.
func (p *panics) Panicked() any { return p.panicked }

// PanickedLate returns the value of a panic that came after the callers had their answer; nil if there was none. It is for the
// caller of Run, once Run has returned.
func (p *panics) PanickedLate() any { return p.late }

// Deserted reports whether nobody would learn of a panic of the call, since its first caller has left (firstLeft) or has its answer (ending is set). It is
// asked when the call is over.
func (c *Call[R]) Deserted() bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.firstLeft || c.ending != nil
}

// Recording announces that the run now records the operation's end. firstLeft is true if the caller that started the call has left before, with an error in place of
// the end: the end then does not count as told to it. From then on this caller stays until the result is there.
func (c *Call[R]) Recording() (firstLeft bool) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.recording = true
	return c.firstLeft
}

// Answer gives all waiting callers the result before the call is over. The function run in Run calls it, once at most. The call stays in the table until that
// function returns: nobody joins it (closed), and the next call of the operation waits for its end. A result or a panic after Answer reaches no caller: see
// PanickedLate.
func (c *Call[R]) Answer(result R) {
	c.result, c.ending = result, make(chan struct{})
	c.table.mu.Lock()
	c.closed, c.inDoubt = true, false
	c.table.ending[c] = true
	c.table.mu.Unlock()
	close(c.done)
}

// Crash is the cause of a result if the run has panicked, or has ended its goroutine.
type Crash struct {
	Value any // of the panic; nil: runtime.Goexit
}

// Error says whether the call ended by a panic or by runtime.Goexit. It names only the type of the panic's value, which may hold a secret.
func (c *Crash) Error() string {
	if c.Value == nil {
		return "runtime.Goexit was called"
	}
	return fmt.Sprintf("panic with a %T", c.Value)
}

// Run runs the call in the current goroutine, once no earlier call of the same operation is left, and gives everybody its result. If its callers have had their
// result by Answer (ending is set), the result of run is not used. If run panics or ends the goroutine, crashed makes the result from a *Crash; a panic goes
// on in the caller that started the call. crashed also makes it from the reason why run is not called: the wait for the earlier call failed, or all callers
// have left.
func (c *Call[R]) Run(run func() R, crashed func(cause error) R) {
	ended := false
	defer func() {
		if c.ending != nil {
			c.late = recover()
			c.end()
			close(c.ending)
			c.letGo()
			return
		}
		if c.panicked = recover(); !ended {
			c.result = crashed(&Crash{c.panicked})
		}
		c.end()
		close(c.done)
		c.letGo()
	}()
	if err := c.awaitPrevious(); err != nil {
		c.result, ended = crashed(err), true
		return
	}
	if !c.begin() {
		c.result, ended = crashed(sanitize.Cause(c.ctx)), true
		return
	}
	if result := run(); c.ending == nil {
		c.result = result
	}
	ended = true
}

// awaitPrevious waits for the end of earlier calls of the same operation, which were given up or answered and still run: no two runs of one
// operation. Errors: ErrGuest if a function of the program takes too long, ErrCircle if the wait would never end; then the call must not run.
func (c *Call[R]) awaitPrevious() error {
	never := context.Background()
	for c.previous != nil {
		previous := c.previous
		err := previous.work.wait(never, c.patience, previous.done)
		if err == nil && previous.ending != nil {
			err = previous.work.wait(never, c.patience, previous.ending)
		}
		previous.work.leave(&c.work)
		if err != nil {
			return err
		}
		before := previous.previous
		if before != nil {
			err = before.work.await(&c.work)
		}
		c.table.mu.Lock()
		c.previous = before
		c.table.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// begin is called when the call has waited for the end of an earlier call of the same operation. It returns false if all its callers have left
// meanwhile: then it must not run.
func (c *Call[R]) begin() bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.waits = false
	return !c.abandoned
}

// abandon is called by the last caller when it leaves. It returns true if the call has not begun, since it still waits for an earlier one (waits): then it will
// never run anything.
func (c *Call[R]) abandon() bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.abandoned = c.waits
	return c.abandoned
}

// end takes the call out of the table. If an earlier call of the same operation (previous) has not ended (it writes its record), that one gets its place in the
// table back.
func (c *Call[R]) end() {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.closed, c.ended = true, true
	c.work.End()
	delete(c.table.ending, c)
	if c.table.calls[c.record.ID] != c {
		return
	}
	if c.previous != nil && !c.previous.ended {
		c.table.calls[c.record.ID] = c.previous
		return
	}
	delete(c.table.calls, c.record.ID)
}

// letGo ends one use of the call's result. The last one releases the result, such as the rest of an answer's body.
func (c *Call[R]) letGo() {
	c.table.mu.Lock()
	c.users--
	last := c.users == 0
	c.table.mu.Unlock()
	if last {
		c.table.release(c.result)
	}
}

// over reports whether the result of the call is there. It then counts, even if a caller's context ends at the same moment.
func (c *Call[R]) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
