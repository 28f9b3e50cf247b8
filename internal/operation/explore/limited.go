package explore

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds slow limiters: an operation is left to others, and its call goes on with it later.

// limited adds the state after a long wait for the rate limiter before another send, if the bounds leave one: the drive then leaves its operation to others. A
// pass over a journal that is not shared has nobody to leave it to.
func (x *ways) limited() {
	if proc := &x.w.Procs[x.p]; x.w.Left.Limits == 0 || x.asksAgain() || proc.Pass && !x.slice.Shared {
		return
	}
	x.out(LimiterIsSlow, "", func(to *World) { to.Left.Limits-- }, func(d *operation.Drive) { d.Limited() })
}

// asksAgain reports whether the client sends an ended operation again, for its answer alone. Then it leaves the
// operation to nobody during a wait.
func (x *ways) asksAgain() bool { return x.w.Ops[x.t].Rec.Op.State.Final() }

// leaveFirst lets the limiter take long before the first send of a drive: its operation is given back as it was before: in doubt (Doubted), or held for its
// caller (Held). Nothing is added once the record has changed (Stale), or the lease is lost. The result of the write may be lost: the call then ends with an
// unknown outcome.
func (x *ways) leaveFirst() {
	s, proc := x.slice, &x.w.Procs[x.p]
	d, rec := proc.Drive, *x.w.Ops[x.t].Rec
	if s := d.Step(); s != operation.Check && s != operation.CheckToken && s != operation.AskFirst {
		return
	}
	if x.w.Left.Limits == 0 || d.Reached() || d.Attempts() > 0 || proc.Stale || proc.Lost || !rec.Exists || x.asksAgain() {
		return
	}
	to := *x.w
	to.Left.Limits--
	before := operation.Op{}
	if proc.Doubted {
		before.MaybeSent, before.FirstSent = true, rec.Op.FirstSent
	}
	if proc.Held {
		before.State, before.Hold = persist.StateHeld, persist.HoldCaller
	}
	rec.Op = plain(rec.Op.GivenBack(before, s.latestFirst(x.p, &rec.Op)))
	s.write(&to, x.t, x.p, rec, true)
	unsaid := to
	to.Procs[x.p] = proc.left(false)
	e := Event{By: int8(x.p), On: int8(x.t), Did: LeavesUnsent}
	x.add(x.w, to, e)
	if x.w.Left.Fails > 0 { // nothing is sent any more
		unsaid.Left.Fails--
		unsaid.Procs[x.p] = Proc{}
		if e.Did = LeavesUnsentUnsaid; proc.Caller {
			e.Told = ToldUnknown
		}
		x.add(x.w, unsaid, e)
	}
}

// left returns the rest of a call after it has given its operation back; nothing of a pass. moved reports whether the
// record has changed without the call's knowledge.
func (p *Proc) left(moved bool) Proc {
	if !p.Caller {
		return Proc{}
	}
	return Proc{State: State{Left: true, On: p.On, Caller: true, Plain: p.Plain, Created: p.Created, Stale: p.Stale || moved}}
}

// left adds the states of client p with a call that has left its operation to others, for a wait for the rate limiter: it goes on, or is given up. To go on is
// no further call: Calls gets one more, since open and begin count one.
func (m *moves) left(w *World, p int) {
	proc := &w.Procs[p]
	t, created := int(proc.On), proc.Created && !proc.Stale
	free := *w
	free.Procs[p] = Proc{}
	free.Left.Calls++
	switch {
	case w.Ops[t].Rec.Exists:
		m.open(&free, p, t, operation.Given{Created: created})
	case m.slice.Enqueued: // an enqueued operation is never forgotten
	default:
		m.begin(&free, p, t)
	}
	m.giveUp(w, p, t)
}

// giveUp gives up the call of client p, which waits without its operation, that of key t. The operation is forgotten if the call has begun it, nobody has had
// it since (not Stale), and it was never sent. That write may fail, too. If a lost Begin of the key may still show (noted), nobody can say "none".
func (m *moves) giveUp(w *World, p, t int) {
	s, proc, rec := m.slice, &w.Procs[p], w.Ops[t].Rec
	to := *w
	to.Procs[p] = Proc{}
	e := Event{By: int8(p), On: int8(t), Did: IsGivenUpAside}
	says := func(to World, standing operation.Standing) {
		verdict := operation.Judge(standing, operation.Same)
		if e.Told = toldOf(verdict); verdict == operation.NoEffect {
			tell(&to, t, operation.Absent)
		}
		m.add(w, to, e)
	}
	none := operation.None
	if s.noted(w, t, s.process(p)) {
		none = operation.Unclear
	}
	mine := rec.Exists && proc.Created && rec.Op.State == persist.StatePending && !rec.Op.MaybeSent && !rec.Op.Enqueued
	switch {
	case mine && !proc.Stale && !w.leased(t, p):
		gone := to
		s.write(&gone, t, p, Rec{}, true)
		e.Did = ForgetsLeft
		says(gone, none)
		if w.Left.Fails > 0 {
			to.Left.Fails--
			gone.Left.Fails--
			e.Did = ForgetsLeftUnsaid
			says(gone, operation.Unclear)
			e.Did = ForgetFails
			says(to, rec.Op.Standing)
		}
	case rec.Exists:
		says(to, rec.Op.Standing)
	default:
		says(to, none)
	}
}

// latestFirst returns the latest first send of an operation by a call of client p. It is begun when it is first sent.
func (s *Slice) latestFirst(p int, op *operation.Op) time.Time {
	return s.Configs[p].Limits.LatestFirstSend(op.FirstSent, op.Window)
}
