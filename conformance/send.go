package conformance

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// do sends one request on a fresh connection and reads the answer.
func (x *trial) do(op *operation, note string) *answer {
	return x.doFramed(op, withLength, note)
}

// limitedTries is how often a request is sent again that met a limit on the rate
// of requests, and limitedWaitMax is how long it is waited for at most.
const (
	limitedTries   = 20
	limitedWaitMax = 2 * time.Second
)

// doFramed sends a request again where it met a limit on the rate of requests.
func (x *trial) doFramed(op *operation, f framing, note string) *answer {
	return x.pastLimit(op, func() *answer { return x.once(op, f, note) })
}

// pastLimit sends a request again where it met a limit on the rate of requests: that says nothing of keys.
func (x *trial) pastLimit(op *operation, send func() *answer) *answer {
	for n := 1; ; n++ {
		a := send()
		if x.r.limited(a) && op.failing == 0 {
			x.r.throttled.Add(1)
		}
		wait := x.limitWait(a)
		if putOff := x.putOffWait(a); putOff > 0 && op.failing == 0 && n < putOffTries {
			wait = putOff
		}
		if wait == 0 || op.failing == http.StatusTooManyRequests || n == limitedTries || !x.pause(wait) {
			return a
		}
	}
}

// putOffTries is the number of sends of a request under a key that stays put off: this is a fault.
const putOffTries = 4

// putOffWait returns the wait after a 503. A right server may put off any request before its work. Zero: the answer has another status,
// asks for a wait over limitedWaitMax, or is the outcome in this API.
func (x *trial) putOffWait(a *answer) time.Duration {
	p := x.r.o.Profile
	wait, told := hint(p, a)
	if !told {
		wait = 100 * time.Millisecond
	}
	if a.status != http.StatusServiceUnavailable || a.replayed || wait > limitedWaitMax || matchesAny(p.InProgress, a) || p.Stored.ServerError == profile.Yes {
		return 0
	}
	return max(wait, 20*time.Millisecond)
}

// limitWait is how long the limit that an answer comes from asks to wait. Zero: it comes from none, or it says nothing, or longer
// than limitedWaitMax: then it may as well be meant for the duplicate.
func (x *trial) limitWait(a *answer) time.Duration {
	wait, told := hint(x.r.o.Profile, a)
	if !x.r.limited(a) || !told || wait > limitedWaitMax {
		return 0
	}
	return max(wait, 20*time.Millisecond)
}

// noteLimit notes how long an answer asks to wait, for takeLimit.
func (x *trial) noteLimit(a *answer) {
	wait := x.limitWait(a)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.limited = max(x.limited, wait)
}

// takeLimit is the longest wait that limits have asked for since it was called last; zero: none has.
func (x *trial) takeLimit() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	wait := x.limited
	x.limited = 0
	return wait
}

// once sends one request on a fresh connection, whatever the answer is.
func (x *trial) once(op *operation, f framing, note string) *answer {
	l := x.dial("")
	defer x.park(l)
	l.load(op, f)
	l.note = note
	l.write(0)
	return l.receive()
}

// parkedMax bounds the connections that a case keeps open.
const parkedMax = 32

// park keeps a connection open after its answer, as clients do: one that closes
// at once may look to the server as if it had left before the answer. The oldest
// is closed when there are too many, and all when the case ends.
func (x *trial) park(l *link) {
	if l.err != nil {
		l.close()
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.parked = append(x.parked, l)
	if len(x.parked) > parkedMax {
		x.parked[0].close()
		x.parked = x.parked[1:]
	}
}

// first sends an operation that has to succeed: a set-up.
func (x *trial) first(op *operation) (*answer, bool) {
	a := x.do(op, "the first")
	return a, x.setup(a)
}

// setup makes the case inconclusive where the answer is no success.
func (x *trial) setup(a *answer) bool {
	if a.kind != done || a.err != nil {
		x.inconclusive("the set-up did not come about: the first request was answered %s", a)
		return false
	}
	return true
}

// again sends op again until the answer is not "in progress", for a second at
// most: a server may take a moment to store what it has answered.
func (x *trial) again(op *operation, note string) *answer {
	return x.until(op, note, min(x.r.o.Settle, time.Second), false)
}

// resolve sends op again until it gets the outcome or a refusal, for as long as
// Options.Settle allows.
func (x *trial) resolve(op *operation, note string) *answer {
	return x.until(op, note, x.r.o.Settle, true)
}

// patience is for how long a case waits before it lets others go on.
const patience = time.Second

// until sends op again, with growing pauses, while the answer is "in progress" and
// no replay, or missing, or, with alsoServerErrors, a server error. After limit, or
// when the case ends, it returns the last answer.
func (x *trial) until(op *operation, note string, limit time.Duration, alsoServerErrors bool) *answer {
	return x.untilBy(func() *answer { return x.do(op, note) }, limit, alsoServerErrors)
}

// untilBy is until with any function that sends the request once.
func (x *trial) untilBy(send func() *answer, limit time.Duration, alsoServerErrors bool) *answer {
	return x.while(func(a *answer) bool { return open(a) || alsoServerErrors && a.kind == broken }, send, limit)
}

// open reports whether an answer leaves open what becomes of the request: it is in progress, or there is no answer.
func open(a *answer) bool { return a.kind == busy && !a.replayed || a.kind == noAnswer }

// while sends a request again, with growing pauses, while the answer is such that one has to wait. After limit, or when the case
// ends, it returns the last answer.
func (x *trial) while(waiting func(*answer) bool, send func() *answer, limit time.Duration) *answer {
	begun := time.Now()
	wait, deadline := 5*time.Millisecond, begun.Add(limit)
	for {
		a := send()
		if !waiting(a) || x.over() || time.Now().Add(wait).After(deadline) || !x.pause(wait) {
			return a
		}
		if time.Since(begun) > patience {
			x.waited = true
			x.stepAside()
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
}

// closedAgain reports whether the server closed the connection of a request without an answer, as it did before: so a handler
// that crashes looks in many languages.
func closedAgain(before, a *answer) bool {
	return before.closed() && a.closed()
}

// closed reports whether the server closed the connection before an answer.
func (a *answer) closed() bool {
	text := errorText(a.err)
	return a.status == 0 && (text == closedText || text == resetText)
}

// over reports whether nothing can be sent any more: a budget is used up, or the transport failed.
func (x *trial) over() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.broke != nil
}

// pause waits for d. It returns false, at once, when the case has ended.
func (x *trial) pause(d time.Duration) bool {
	if d <= 0 {
		return x.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.ctx.Done():
		return false
	}
}
