package conformance

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// do sends one request on a fresh connection and returns its answer, never nil. After a rate
// limit it sends again. note labels the exchange in the report. Several goroutines may call
// it.
func (x *trial) do(op *operation, note string) *answer {
	return x.doFramed(op, withLength, note)
}

// After a limit on the rate of requests a request is sent limitedTries times at most. A limit
// that asks for a wait over limitedWaitMax is taken as an answer.
const (
	limitedTries   = 20
	limitedWaitMax = 2 * time.Second
)

// doFramed sends one request on a fresh connection with this framing of the body, its length or chunked, and returns its answer, never nil. After a
// rate limit it sends again.
func (x *trial) doFramed(op *operation, f framing, note string) *answer {
	return x.pastLimit(op, func() *answer { return x.once(op, f, note) })
}

// pastLimit calls send until its answer comes from no rate limit and is no short postponement (503), and returns the last answer. Such answers say
// nothing of keys. limitedTries and putOffTries bound the sends. It waits as the answers ask. op is the request of send: one that was told to answer
// 429 is not sent again, and one that was told to fail is not sent again after a 503.
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

// putOffTries is the most sends of a request that is answered 503 each time. A key that stays
// put off for longer is a fault.
const putOffTries = 4

// putOffWait returns the wait after a 503, by its hint or 100 ms: a correct server may put off any request before its work. Zero: a has another
// status, asks for more than limitedWaitMax, may be a stored answer (a replay, or an API that stores server errors), or means "in progress" in this
// API.
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

// limitWait returns the wait that a rate limit asks for in a. Zero: a comes from no limit, names no wait, or asks for more than limitedWaitMax. A 429
// without a wait may be the server's answer to a duplicate, and is a final answer.
func (x *trial) limitWait(a *answer) time.Duration {
	wait, told := hint(x.r.o.Profile, a)
	if !x.r.limited(a) || !told || wait > limitedWaitMax {
		return 0
	}
	return max(wait, 20*time.Millisecond)
}

// noteLimit remembers the wait that an answer asks for, for takeLimit. Several goroutines may
// call it.
func (x *trial) noteLimit(a *answer) {
	wait := x.limitWait(a)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.limited = max(x.limited, wait)
}

// takeLimit returns the longest wait that the target's rate limits have asked for since its last call, and forgets it; zero if there was none.
func (x *trial) takeLimit() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	wait := x.limited
	x.limited = 0
	return wait
}

// once sends one request on a fresh connection, and does not repeat it, even after a rate limit. note labels it in the report. The connection stays
// open until the case ends, so that the server does not see a client that leaves (park).
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

// park takes over a link after its answer, and keeps it open until the trial ends, as clients
// do: to the server, one that closes at once may look as if it had left before the answer.
// Beyond parkedMax the oldest is closed. A failed link is closed at once. The caller must not
// use the link again.
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

// first sends an operation that must succeed, as a set-up. False: it did not, and the case is
// inconclusive.
func (x *trial) first(op *operation) (*answer, bool) {
	a := x.do(op, "the first")
	return a, x.setup(a)
}

// setup makes the case inconclusive unless a is a complete success: the case needs a first request that succeeds. It returns true for a success.
func (x *trial) setup(a *answer) bool {
	if a.kind != done || a.err != nil {
		x.inconclusive("the set-up did not come about: the first request was answered %s", a)
		return false
	}
	return true
}

// again sends op again until the answer is final: neither "in progress" nor missing. It gives up after a second, since a server may take a moment to
// store an answer, and returns the last answer in any case.
func (x *trial) again(op *operation, note string) *answer {
	return x.until(op, note, min(x.r.o.Settle, time.Second), false)
}

// resolve sends op again until it gets the outcome or a refusal, for Options.Settle at most.
// It returns the last answer, final or not.
func (x *trial) resolve(op *operation, note string) *answer {
	return x.until(op, note, x.r.o.Settle, true)
}

// patience is the time after which a waiting case lets others go on.
const patience = time.Second

// until sends op again, with growing pauses, while the answer is open: in progress and no
// replay, or missing. alsoServerErrors treats server errors alike. After limit, or when the
// case ends, it returns the last answer.
func (x *trial) until(op *operation, note string, limit time.Duration, alsoServerErrors bool) *answer {
	return x.untilBy(func() *answer { return x.do(op, note) }, limit, alsoServerErrors)
}

// untilBy calls send, which sends the request once, with growing pauses until the answer is final: not in progress, not missing and, with
// alsoServerErrors, no server error. After limit, or when the case ends, it returns the last answer.
func (x *trial) untilBy(send func() *answer, limit time.Duration, alsoServerErrors bool) *answer {
	return x.while(func(a *answer) bool { return open(a) || alsoServerErrors && a.kind == broken }, send, limit)
}

// open reports whether an answer leaves the fate of the request open: it is in progress and no
// replay, or missing.
func open(a *answer) bool { return a.kind == busy && !a.replayed || a.kind == noAnswer }

// while calls send, with growing pauses, as long as waiting holds for the answer. It returns the last answer after limit, when the case ends, or when
// nothing can be sent any more. It sends once at least. waited says afterwards that the case waited for long. After a second of waiting it lets other
// cases run meanwhile, so that only the case's goroutine may call it.
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

// closedAgain reports whether the server closed both connections without an answer: in many
// languages a crashed handler looks so.
func closedAgain(before, a *answer) bool {
	return before.closed() && a.closed()
}

// closed reports whether the server closed or reset the connection before an answer.
func (a *answer) closed() bool {
	text := errorText(a.err)
	return a.status == 0 && (text == closedText || text == resetText)
}

// over reports whether nothing more can be sent: a budget is used up, or the transport has
// failed.
func (x *trial) over() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.broke != nil || x.spent != nil
}

// pause waits for d; zero or less is no wait. It returns false, at once, when the case has
// ended.
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
