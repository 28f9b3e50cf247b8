package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/pace"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// flights are the operations that are being driven in this process. The table
// hangs on the journal, so that all its clients share it.
type flights struct {
	mu sync.Mutex
	m  map[persist.ID]*flight

	origins pace.Origins // that take no connections
}

func newFlights() any { return &flights{m: make(map[persist.ID]*flight)} }

// flight is one operation being driven, and whoever waits for it. It is given up
// when the last waiter leaves.
type flight struct {
	table    *flights
	op       operation       // what it was entered for
	before   *flight         // one of the same operation that was given up and has not landed
	values   context.Context // the first caller's values; never ends
	draining context.Context // ends the waits between attempts

	first waiter
	alone [1]*waiter

	// Of a Do.
	c        *Client
	name     string
	seeStray func(persist.Record, error) bool // is seeStanding
	refusal  error                            // what it came to

	// ofPass: begun by Resume or Run, and not by a caller with the key.
	ofPass bool
	// paced: of a Run, which leaves an origin alone that takes no connections.
	paced bool

	// Under table.mu until it has landed.
	waiters []*waiter
	met     bool                    // somebody else has come upon it, and may wait for it
	closed  bool                    // over, or given up; nobody joins any more
	shown   bool                    // to a caller who sees plain HTTP, who may act on it
	stray   bool                    // its operation may be of unknown outcome from before
	cause   error                   // why it was given up
	stop    context.CancelCauseFunc // of the stage under way

	drive    drive
	done     chan struct{} // closed when land is set; nil if nobody waits for that
	land     landing
	panicked any
}

// hangar keeps flights that are over for the next, since they are large.
var hangar = sync.Pool{New: func() any { return new(flight) }}

func newFlight(c *Client, name string) *flight {
	f := hangar.Get().(*flight)
	f.c, f.name = c, name
	return f
}

// done says that the waiter has its response. A flight that went the usual way is
// kept for another: nobody else ever came upon it, no loop, wait or error holds on
// to it, and what the transport may still hold on to is not part of it.
func (w *waiter) done() {
	f := w.f
	if !w.first || f.met || f.drive.looping || f.land.err != nil || f.land.answer.partial {
		return
	}
	*f = flight{seeStray: f.seeStray}
	hangar.Put(f)
}

// waiter is one caller's place in a flight.
type waiter struct {
	f     *flight
	ctx   context.Context
	first bool // it began the flight
	flew  bool // and flew it
	plain bool // its caller sees plain HTTP
}

// landing is how a flight ended. An error may have an answer beside it, for
// callers that see plain HTTP.
type landing struct {
	answer *landed
	err    error
	// aside: it says nothing to a Do that joined, which goes on by itself; the
	// flight did not drive, or was ended for reasons of whoever began it.
	aside bool
	// unreported: no caller with its key was told how the operation ended, before
	// this call's.
	unreported bool
}

// landed is the answer that every waiter gets a response of its own from.
type landed struct {
	head   *http.Response // protocol and TLS as received; nil from the journal
	status int
	header http.Header
	body   []byte
	// partial: the body is too large to keep, and rest is what is left of it,
	// for one waiter.
	partial bool
	rest    *wire.Body
	result  Result
}

// alone: who enters joins nobody.
const alone = false

// enter joins the flight of the operation that f is for, if there is one, or
// begins f. It gives nil for another request under that key, and to whoever would
// have to join and will not.
func (t *flights) enter(f *flight, ctx, draining context.Context, joins bool) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	standing := t.m[f.op.rec.ID]
	if standing != nil {
		standing.meet()
	}
	if standing != nil && !standing.closed {
		if !joins || !f.op.sameRequest(&standing.op.rec) {
			return nil
		}
		w := &waiter{f: standing, ctx: ctx, plain: f.op.rec.PlainHTTP}
		standing.waiters = append(standing.waiters, w)
		standing.shown = standing.shown || w.plain
		return w
	}
	f.table, f.before, f.draining = t, standing, draining
	if f.values = ctx; ctx.Done() != nil {
		f.values = context.WithoutCancel(ctx)
	}
	f.first = waiter{f: f, ctx: ctx, first: true, plain: f.op.rec.PlainHTTP}
	f.shown = f.first.plain
	// No operation can be in doubt whose key was made for this very call.
	f.stray = !joins || !f.op.rec.Generated
	f.alone[0] = &f.first
	f.waiters = f.alone[:]
	t.m[f.op.rec.ID] = f
	return &f.first
}

// meet prepares for somebody who waits for the landing. Under table.mu.
func (f *flight) meet() {
	f.met = true
	if f.done == nil {
		f.done = make(chan struct{})
	}
}

// cut ends the attempts of all flights that are draining.
func (t *flights) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.m {
		if cause := context.Cause(f.draining); cause != nil {
			f.giveUp(cause)
		}
	}
}

// stage is the context of one stage of the flight, an attempt or a wait, which
// ends when the flight is given up; givenUp is why, if it was before. Only the
// latest stage's ends by itself; it is made anew for each, so that no context has
// to hang on another.
func (f *flight) stage() (ctx context.Context, stop context.CancelCauseFunc, givenUp error) {
	ctx, stop = context.WithCancelCause(f.values)
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	f.stop = stop
	if f.cause != nil {
		stop(f.cause)
	}
	return ctx, stop, f.cause
}

// giveUp ends the stage under way and all that follow. Under table.mu.
func (f *flight) giveUp(cause error) {
	if f.cause != nil {
		return
	}
	f.cause = cause
	if f.stop != nil {
		f.stop(cause)
	}
}

// givenUp is why the flight was given up, or nil.
func (f *flight) givenUp() error {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	return f.cause
}

// fly drives the flight to its end and lets everybody land.
func (f *flight) fly(drive func() landing) {
	ended := false
	defer func() {
		if f.panicked = recover(); f.panicked != nil {
			f.crash(fmt.Errorf("panic: %v", f.panicked))
		} else if !ended {
			f.crash(errGoexit)
		}
		f.leaveTable()
	}()
	if f.before != nil { // two must never drive one record
		<-f.before.done
		f.before = nil
	}
	f.land = drive()
	ended = true
}

// leaveTable lets everybody land. From then on the flight belongs to its waiters.
func (f *flight) leaveTable() {
	f.table.mu.Lock()
	f.closed = true
	if f.table.m[f.op.rec.ID] == f {
		delete(f.table.m, f.op.rec.ID)
	}
	done := f.done
	f.table.mu.Unlock()
	if done != nil {
		close(done)
	}
}

var errGoexit = errors.New("a function of the Config called runtime.Goexit")

// crash lands those who wait for a drive that came to no end. What it did before
// stands in the journal.
func (f *flight) crash(cause error) {
	f.land = landing{err: &Error{Op: "do", Key: Key(f.op.rec.Key), Cause: cause, is: []error{ErrOutcomeUnknown}}}
}

// wait ends with the flight, or with the waiter's own context. Whoever leaves
// last ends the attempt and stays for the landing, to learn what it came to. A
// panic of the caller's own functions goes on in the caller that began the
// flight.
func (w *waiter) wait() (landing, error) {
	if !w.flew {
		select {
		case <-w.f.done:
		case <-w.ctx.Done():
			if !w.leave() && !w.f.over() {
				return landing{}, context.Cause(w.ctx)
			}
			<-w.f.done
		}
	}
	if w.first && w.f.panicked != nil {
		panic(w.f.panicked)
	}
	return w.f.land, nil
}

// over reports whether everybody may land: an answer counts, even where the
// context has ended at the same moment.
func (f *flight) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// leave takes the waiter out. last reports that nobody is left, so that the
// flight is given up.
func (w *waiter) leave() (last bool) {
	f := w.f
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	if len(f.waiters) == 1 && f.waiters[0] == w { // it stays for the landing
		f.closed = true
		f.giveUp(context.Cause(w.ctx))
		return true
	}
	f.waiters = slices.DeleteFunc(f.waiters, func(o *waiter) bool { return o == w })
	return false
}

// plain says whether a caller who sees plain HTTP is, or ever was, among the
// waiters.
func (f *flight) plain() (is, was bool) {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	return slices.ContainsFunc(f.waiters, func(w *waiter) bool { return w.plain }), f.shown
}

// header is the waiter's own copy of the answer's headers. Who was alone all the
// time needs no copy.
func (w *waiter) header() http.Header {
	if !w.f.met {
		return w.f.land.answer.header
	}
	return w.f.land.answer.header.Clone()
}

// deadline is the latest of the waiters' deadlines; zero if one has none.
func (f *flight) deadline() time.Time {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	var latest time.Time
	for _, w := range f.waiters {
		at, ok := w.ctx.Deadline()
		if !ok {
			return time.Time{}
		}
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}

// takeRest hands out the unread rest of a large body, once.
func (f *flight) takeRest() *wire.Body {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	rest := f.land.answer.rest
	f.land.answer.rest = nil
	return rest
}

// flying reports whether id is being driven here, and whether it was of unknown
// outcome before.
func (t *flights) flying(id persist.ID) (flying, stray bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.m[id]
	return f != nil, f != nil && f.stray
}

// mark says whether the flight's operation was of unknown outcome before.
func (t *flights) mark(f *flight, stray bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.stray = stray
}
