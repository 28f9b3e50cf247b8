package inflight

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Call is one run of an operation, and the callers who wait for its result. Its methods are safe for concurrent
// use; Run is called once.
type Call[R any] struct {
	table    *Table[R]
	record   *persist.Record
	previous *Call[R] // the call of the same operation that was given up or answered and is not over yet; nil if none
	values   context.Context
	ctx      context.Context
	cancel   context.CancelCauseFunc
	draining context.Context
	sends    atomic.Int64

	// Under table.mu.
	callers   *Caller[R] // a list through Caller.next
	closed    bool       // over, given up or answered: nobody joins any more
	everPlain bool
	inDoubt   bool
	waits     bool // for the end of previous: nothing was run yet
	abandoned bool // everybody left while it waited: it runs nothing
	users     int  // of the result: the run, and the callers that are not gone

	// Written before done is closed, which says that the result is there.
	result   R
	panicked any
	ending   chan struct{} // of a call that was answered: closed when it is over; else nil
	done     chan struct{}
}

// Values is a context with the values of the caller that started the call. It never ends.
func (c *Call[R]) Values() context.Context { return c.values }

// Context is as Values, but ends when the call is given up; its cause says why.
func (c *Call[R]) Context() context.Context { return c.ctx }

// Draining ends when the call must not wait for another attempt any more. An attempt that is on the wire goes on.
func (c *Call[R]) Draining() context.Context { return c.draining }

// PlainHTTP reports whether a caller that sees plain HTTP is among those who wait, and whether one ever was.
func (c *Call[R]) PlainHTTP() (is, was bool) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	for caller := c.callers; caller != nil; caller = caller.next {
		is = is || caller.plain
	}
	return is, c.everPlain
}

// Deadline is the latest deadline of those who wait; zero if one of them has none.
func (c *Call[R]) Deadline() time.Time {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	var latest time.Time
	for caller := c.callers; caller != nil; caller = caller.next {
		at, ok := caller.ctx.Deadline()
		if !ok {
			return time.Time{}
		}
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}

// SetInDoubt says whether the operation was of unknown outcome before the call.
func (c *Call[R]) SetInDoubt(inDoubt bool) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.inDoubt = inDoubt
}

// SetSends says how many sends the call has made, with those that are being made.
func (c *Call[R]) SetSends(n int) { c.sends.Store(int64(n)) }

// Sends returns how many sends the call has made, as SetSends said last.
func (c *Call[R]) Sends() int { return int(c.sends.Load()) }

// GiveUp ends the call's Context, as if all callers had left because of cause.
func (c *Call[R]) GiveUp(cause error) { c.cancel(cause) }

// Panicked is what the call panicked with, once it is over.
func (c *Call[R]) Panicked() any { return c.panicked }

// Answer gives everybody who waits the result before the call is over. It is called by what Run runs, once at most. The call
// keeps its place until that returns: nobody joins it, and the next call of the operation waits for its end, as does whoever
// calls Table.Ended. What is returned or panics afterwards reaches no caller: a panic ends the program.
func (c *Call[R]) Answer(result R) {
	c.result, c.ending = result, make(chan struct{})
	c.table.mu.Lock()
	c.closed, c.inDoubt = true, false
	c.table.ending[c] = true
	c.table.mu.Unlock()
	close(c.done)
}

// errGoexit ends a call whose function ended its goroutine.
var errGoexit = errors.New("a function of the Config called runtime.Goexit")

// Run runs the call in the current goroutine, once no earlier call of the same operation is left, and gives
// everybody its result. Where run panics or ends the goroutine, crashed makes the result; a panic goes on in the
// caller that started the call.
func (c *Call[R]) Run(run func() R, crashed func(cause error) R) {
	ended := false
	defer func() {
		if c.ending != nil { // a panic goes on
			c.end()
			close(c.ending)
			c.letGo()
			return
		}
		if c.panicked = recover(); c.panicked != nil {
			c.result = crashed(fmt.Errorf("panic: %v", c.panicked))
		} else if !ended {
			c.result = crashed(errGoexit)
		}
		c.end()
		close(c.done)
		c.letGo()
	}()
	if c.previous != nil { // wait for the call that was given up or answered: no two runs of one operation
		<-c.previous.done
		if c.previous.ending != nil {
			<-c.previous.ending
		}
		c.previous = nil
	}
	if !c.begin() {
		c.result, ended = crashed(context.Cause(c.ctx)), true
		return
	}
	if result := run(); c.ending == nil {
		c.result = result
	}
	ended = true
}

// begin ends the wait for the call before. It returns false if nobody is left for whom to run.
func (c *Call[R]) begin() bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.waits = false
	return !c.abandoned
}

// abandon sees to it that the call runs nothing, for the last caller that leaves. It returns false if the call has begun.
func (c *Call[R]) abandon() bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.abandoned = c.waits
	return c.abandoned
}

// end takes the call out of the table.
func (c *Call[R]) end() {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.closed = true
	delete(c.table.ending, c)
	if c.table.calls[c.record.ID] == c {
		delete(c.table.calls, c.record.ID)
	}
}

// letGo ends one use of the result.
func (c *Call[R]) letGo() {
	c.table.mu.Lock()
	c.users--
	last := c.users == 0
	c.table.mu.Unlock()
	if last {
		c.table.release(c.result)
	}
}

// over reports whether the result is there: it counts, even where a caller's context ends at the same moment.
func (c *Call[R]) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
