package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The bounds of one statement for several calls.
const (
	gatherRows  = 128
	gatherBytes = 1 << 20 // of bodies and answers; from there on no further row is added
)

// One such statement runs at a time, since each of several simultaneous commits takes longer. A second one begins
// only while gatherMany calls wait. Many callers then use more than one of the server's processors.
const (
	gatherMany  = 16
	gatherSlots = 2
)

// A late call joins a statement for others once there are lateMany late calls, since a statement with few rows is
// over soon. It also joins after lateMost; from then on it is no longer made after calls that came later.
const (
	lateMany = 48
	lateMost = 10 * time.Millisecond
)

// errAlone tells repeat to make the try for this row alone.
var errAlone = errors.New("not served together with others")

// errPanicked is the result of the other calls when the driver panics in a statement for several.
var errPanicked = errors.New("the driver panicked in a statement for several")

// gather lets simultaneous calls share a statement. Only late calls wait for others to come.
type gather struct {
	j     *Journal
	reads bool // the statement changes nothing, so it may end with the context of a lone call
	run   func(ctx context.Context, conn *sql.Conn, calls []*sharer) (served func(*sharer) bool, err error)

	mu      sync.Mutex
	waiting []*sharer
	late    []*sharer   // the late calls
	timer   *time.Timer // calls hurry; nil: it does not run. It runs while there are any in late and all slots are free
	busy    int         // slots
}

// sharer is one call in a gather.
type sharer struct {
	ctx    context.Context // counts until the statement is handed over, if it is for this call alone
	row    *Row
	begins bool        // the row; false: it changes or reads it
	late   bool        // the call can wait
	since  time.Time   // the time of its arrival
	served chan result // gets one
}

// result is the result of a call's part of a statement.
type result struct {
	kind     Doubt
	err      error
	panicked any // of the driver: the call panics with it
}

// first returns the first try of a call's statement, one that it shares with other calls. It is nil if g is nil: then each call makes its own
// statement. call has the row, and says whether it begins a record, and whether nobody waits for its result (late). A firstTry gets two contexts: that of the
// caller, and one with the time limit of the call.
func (g *gather) first(call sharer) firstTry {
	if g == nil {
		return nil
	}
	return func(ctx, limited context.Context) (Doubt, error) {
		call.ctx, call.served = ctx, make(chan result, 1)
		return g.try(limited, &call)
	}
}

// try makes one try of a call, in a statement that it shares with others. While the call waits for its statement, it can leave: if the caller has gone, or
// without a connection in time. The Doubt says if the statement may have taken effect although it failed. errAlone: the row was not written or read by the
// shared statement; the caller must try it alone, which also finds out why. If the statement already has the call, nothing can take it back, so it waits for
// the result.
func (g *gather) try(limited context.Context, me *sharer) (Doubt, error) {
	g.enter(me)
	var r result
	select {
	case r = <-me.served:
	case <-me.ctx.Done():
		if g.leave(me) {
			return Undone, me.ctx.Err()
		}
		r = <-me.served
	case <-limited.Done():
		if g.leave(me) {
			return NotSent, fmt.Errorf("%w: %w", errNoConnection, limited.Err())
		}
		r = <-me.served
	}
	if r.panicked != nil {
		panic(r.panicked)
	}
	return r.kind, r.err
}

// enter adds a call to those that wait for a shared statement. If none is under way (busy is their number), it starts the making of one, and of a second one
// (up to gatherSlots) only for many waiting calls: two commits at once take longer. A late call (nobody waits for its result) waits for others first.
func (g *gather) enter(me *sharer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	me.since = time.Now()
	if me.late {
		g.late = append(g.late, me)
		g.remind()
		return
	}
	g.waiting = append(g.waiting, me)
	if g.busy == 0 || g.busy < gatherSlots && len(g.waiting) >= gatherMany {
		g.busy++
		go g.work()
	}
}

// remind starts the timer if there are late calls, unless it runs. The timer calls hurry when the first of them has waited for lateMost. The
// caller holds mu.
func (g *gather) remind() {
	if len(g.late) > 0 && g.timer == nil {
		g.timer = time.AfterFunc(lateMost-time.Since(g.late[0].since), g.hurry)
	}
}

// overdue reports whether a late call has waited for lateMost. The caller holds mu.
func (g *gather) overdue() bool { return len(g.late) > 0 && time.Since(g.late[0].since) >= lateMost }

// hurry is called by the timer: it starts the making of a statement for late calls that have waited for long enough. If a statement is under way, its
// maker takes them next.
func (g *gather) hurry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = nil
	switch {
	case g.busy > 0:
	case g.overdue():
		g.busy++
		go g.work()
	default: // the call has left, or was served with others
		g.remind()
	}
}

// leave takes a call out of those that wait. It returns false if a statement has the call already (it is in no queue): then the call must wait for the result.
func (g *gather) leave(me *sharer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	queue := &g.waiting
	if me.late {
		queue = &g.late
	}
	i := slices.Index(*queue, me)
	if i < 0 {
		return false
	}
	*queue = slices.Delete(*queue, i, i+1)
	return true
}

// work makes one shared statement after another while calls wait. It runs in its own goroutine, so that the next statement is on its way before the
// callers of the last one go on.
func (g *gather) work() {
	for calls := g.take(); len(calls) > 0; calls = g.take() {
		g.make(calls)
	}
}

// take returns the calls for the next statement: as many waiting calls as fit (gatherRows, gatherBytes). Late calls (nobody waits for their results) join at
// the end if they are many; once the first of them has waited for long enough, they and the waiting ones come in the order of arrival. It returns nil, and ends
// the maker that asks, if there are no calls, or too few for a second statement beside one under way.
func (g *gather) take() (calls []*sharer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	overdue := g.overdue()
	if len(g.waiting) == 0 && !overdue || g.busy > 1 && len(g.waiting) < gatherMany {
		g.busy--
		g.remind()
		return nil
	}
	lateJoin := overdue || len(g.late) >= lateMany
	for size := 0; len(calls) < gatherRows && size < gatherBytes; {
		queue := &g.waiting
		if lateJoin && len(g.late) > 0 && (len(g.waiting) == 0 || overdue && g.late[0].since.Before(g.waiting[0].since)) {
			queue = &g.late
		}
		if len(*queue) == 0 {
			break
		}
		calls, size = append(calls, (*queue)[0]), size+(*queue)[0].row.size()
		*queue = (*queue)[1:]
	}
	return calls
}

// make makes one statement for these calls, and sends each its result. A call whose row was not served must be made alone, to find the reason. So
// must each if the database undid the statement, because of any of the rows, and each of several if there was no connection. If the driver panics, the
// first call panics with the same value, and the results of the others are unknown: kind and err say so until the driver returns. A read for one call (g.reads)
// ends with that call's context; a write does not.
func (g *gather) make(calls []*sharer) {
	var served func(*sharer) bool
	alone := len(calls) == 1
	ctx := calls[0].ctx
	limited := context.WithoutCancel(ctx) // a statement for several does not end with the context of one
	if g.reads && alone {
		limited = ctx
	}
	kind, err := InDoubt, errPanicked
	defer func() {
		panicked := recover()
		for _, call := range calls {
			r := result{kind: kind, err: err, panicked: panicked}
			panicked = nil
			switch {
			case err == nil && served(call):
				r.kind = Undone
			case err == nil || kind == Undone || kind == Again: // because of any of the rows
				r.kind, r.err = Again, errAlone
			case !alone && errors.Is(err, errNoConnection): // one failed connection does not end all calls
				r.kind, r.err = NotSent, errAlone
			}
			call.served <- r
		}
	}()
	kind, err = g.j.try(ctx, limited, !alone, func(ctx context.Context, conn *sql.Conn, _ bool) (err error) {
		served, err = g.run(ctx, conn, calls)
		return err
	})
}
