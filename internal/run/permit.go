package run

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/lanes"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// permit is the leave of a run to send: the limiter of the record's origin has let a request out, and in a fair
// Run the origin has a turn free. Each request of the run asks for it, that of a lookup, too. A run has one
// permit at a time.
type permit struct {
	task *task

	fair     bool        // a fair Run has claimed the operation
	turns    lanes.Turns // they bound the sends at the same time
	admitted bool        // Admit has returned nil, and Dismiss has not followed yet
	stack    *[]byte     // gets the stack of a crash of the limiter; nil: the stack is not kept
	leaves   bool        // in Admit: a long wait for the limiter ends with errLimited
	returns  bool        // leaves may be set: the run is of a pass, or of a call with a key and without plain HTTP
	ahead    int         // further requests already let out by the limiter
	turn     *turn       // the next answer of the limiter, from an earlier wait; nil: the limiter is asked anew
	refused  error       // of the limiter before the first attempt; then no token is fetched
}

// Admit waits for the rate limiter of the record's origin, and in a Run with shares for each origin (fair) for a turn, the permission to send there; until ctx
// ends or the client is closing. The latter does not end the wait of a hop, a redirect's request: it is part of an attempt on the wire. After nil, Dismiss must
// follow; an admitted run does not wait again before that. errLimited: the limiter takes long, see limitLeaving.
func (p *permit) Admit(ctx context.Context, hop bool) error {
	t := p.task
	if p.admitted || t.cfg.Limiter == nil && !p.fair {
		return nil
	}
	if draining := t.call.Draining(); !hop {
		if cause := sanitize.Cause(draining); cause != nil {
			return cause
		}
		// The end of the client ends the wait, and not the attempt.
		within, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(draining, func() { cancel(sanitize.Cause(draining)) })()
		ctx = within
	}
	// The turn may never come, if those in their turn are in a function of the user.
	t.took.enter(&t.took.spent.Waiting)
	defer t.took.leave()
	err := t.visiting(func() error {
		if err := p.limit(ctx); err != nil {
			return err
		}
		return p.turns.Enter(ctx, t.rec.Origin)
	})
	p.admitted = err == nil
	return err
}

// limit waits for the limiter of the record's origin; nil: one request may go out. It first uses permissions left from before: an earlier wait (turn), or requests let
// out beside another (ahead). The limiter counts each call, so none is wasted. An error of it before the first attempt (refused) is returned again; only in a Run with
// shares for each origin (fair) the limiter is asked anew. errLimited: the limiter takes long, and p.turn is the wait, still in progress.
func (p *permit) limit(ctx context.Context) error {
	if p.task.cfg.Limiter == nil {
		return nil
	}
	if t := p.turn; t != nil {
		p.turn = nil
		defer context.AfterFunc(ctx, func() { t.stop(sanitize.Cause(ctx)) })()
		<-t.done // it has come, unless the operation could not be given back
		return p.take(t)
	}
	if p.ahead > 0 {
		p.ahead--
		return nil
	}
	if p.refused != nil && !p.fair { // it was asked before
		return p.refused
	}
	limiter := p.task.cfg.Limiter(p.task.rec.Origin)
	if limiter == nil {
		return nil
	}
	if p.leaves {
		return p.limitLeaving(ctx, limiter)
	}
	defer p.parksLate()()
	if err := limiter.Wait(ctx); err != nil {
		return cmp.Or(sanitize.Cause(ctx), err)
	}
	return nil
}

// limitLeaving waits for a limiter, and keeps the operation's lease for a third of its length at most. Then it returns errLimited: the operation is given back, and the
// wait goes on as p.turn, for all requests that the run needs up to its next send (p.needed), a lookup among them. A wait for one at a time would never reach the send.
// Otherwise it returns the limiter's error, or the cause of ctx.
func (p *permit) limitLeaving(ctx context.Context, limiter Limiter) error {
	t, leave := beginTurn(ctx, p.task.rec.Origin, limiter)
	// One renewal: a shorter wait costs nobody anything.
	timer := time.NewTimer(p.task.cfg.Lease / lease.Renewals)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
		if leave() && t.more(p.needed()) {
			p.turn = t
			return errLimited
		}
		<-t.done // soon: ctx has ended, or it is over
	}
	leave()
	return p.take(t)
}

// take uses up a wait for the limiter (a turn) that is over. If the limiter has let several requests go, ahead counts the later ones. A crash of the
// limiter happens again here, on the run's goroutine.
func (p *permit) take(t *turn) error {
	err := t.result(p.stack)
	if err == nil {
		p.ahead = t.made - 1
	}
	return err
}

// needed returns the number of requests that the rate limiter must allow up to the next send, if the operation is left to others during the
// wait: 1, or 2 with a lookup by the business reference, since the lookup is then made again just before the send.
func (p *permit) needed() int {
	if p.task.givenNow().AsksFirst(p.task.drive.InDoubt()) {
		return 2
	}
	return 1
}

// Dismiss gives back the run's permission to send to its origin (turn), so that another run may send there. It does nothing for a run that has none (not
// admitted), so it may follow each end of an attempt. What the rate limiter has allowed is used up: a limiter takes nothing back.
func (p *permit) Dismiss() {
	if p.admitted {
		p.turns.Leave(p.task.rec.Origin)
	}
	p.admitted = false
}

// waitsLong waits for the rate limiter before another send, and reports whether that takes longer than a third of a lease. It is false at once for a run that
// may not give its operation back (returns). After true, p.turn is the wait, still in progress: the caller ends the run, and leaves the operation to others.
func (p *permit) waitsLong() bool {
	t := p.task
	if !p.returns || t.given.AskedAgain || t.cfg.Limiter == nil {
		return false
	}
	p.leaves = true
	err := p.Admit(t.call.Context(), false)
	if p.leaves = false; err != errLimited {
		return false // any other error is met again by the attempt
	}
	return true
}

// mayBegin waits for a run's turn, the permission to send to its origin, in a Run with shares for each origin (fair). It returns false if the pass was stopped,
// or if others have found meanwhile that the origin takes no connections, unless this run alone tries it again. Only this wait may end since it takes long
// (leaves). If a limiter returns an error (refused), the first send asks it again, and reports it; a token that is needed before is not asked for.
func (p *permit) mayBegin() bool {
	t := p.task
	err := p.Admit(t.call.Context(), false)
	if p.leaves = false; err != nil {
		p.refused = err
		// Any other error is one of the limiter: the first send tells it.
		return stopCause(t.call) == nil && err != errLimited
	}
	return !p.fair || t.engine.origins.Open(t.rec.Origin, t.rec.ID)
}

// parksLate is called before a run waits for a rate limiter and keeps its operation; over must be called after the wait. If the wait takes more than a third of
// a lease, a Run with shares for each origin (fair) claims nothing more of this origin until the end of the wait, and gives up the leases of operations queued
// for it: other processes may send them.
func (p *permit) parksLate() (over func()) {
	t := p.task
	if !p.fair {
		return func() {}
	}
	// The timer may fire while the wait ends.
	var mu sync.Mutex
	late, ended := false, false
	timer := time.AfterFunc(t.cfg.Lease/lease.Renewals, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			late = true
			p.turns.Park(t.rec.Origin)
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		if ended = true; late {
			p.turns.Unpark(t.rec.Origin)
		}
	}
}

// lending calls f, a function of the user, and meanwhile gives the run's turn, its permission to send to the origin, to another run. It takes the
// turn back at once, without a wait: a run that waited here could wait for ever. So for a while more runs may send than there are turns. After it,
// the run checks window and lease again.
func (p *permit) lending(f func() error) error {
	t := p.task
	if p.admitted {
		p.turns.Lend(t.rec.Origin)
		defer p.turns.TakeBack(t.rec.Origin)
	}
	return t.visiting(f)
}

// allows reports whether this client may send to an origin, as gate.allows does. While it calls Config.OriginAllowed, which may take long, it lends
// the run's turn to others, if the run has one.
func (p *permit) allows(origin string) (allowed bool) {
	t := p.task
	if t.cfg.OriginAllowed == nil {
		return t.cfg.gate().allows(origin)
	}
	_ = p.lending(func() error {
		allowed = t.cfg.gate().allows(origin)
		return nil
	})
	return allowed
}

// Handing is called before the user's code runs: the Transport with a request, or the read of an answer's body. It marks the run as being
// there. If that code calls this client for the same operation, the call does not wait for this run without an end.
func (p *permit) Handing() { p.task.call.Work().Visit() }

// Handed ends what Handing has marked: the user's Transport, or the read of a body, has returned.
func (p *permit) Handed() { p.task.call.Work().Return() }
