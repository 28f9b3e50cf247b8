package explore

import (
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file lets a program go on under the next generation of a key of which nothing stands in the journal: the call with the first key was told that it had no effect.
// The first key then gets a placeholder, before anything is sent under the next one.

// mayBeginNext reports whether a call of client p may begin the next generation, the operation of the second key: a new try of the first. An operation under the
// first key may forbid that, since it may still take effect.
func (m *moves) mayBeginNext(w *World, p int) bool {
	first := w.Ops[0].Rec
	if !m.slice.Skips {
		return true
	}
	old := m.slice.read(p, first.Op)
	return !first.Exists || !intent.Successor{Unbegun: true}.IsStoppedBy(&old)
}

// oldStands lets a drive of the next generation look at the operation of the first key before the send. It writes a placeholder under an unused first key, and stops
// the drive if the first operation forbids the send. It returns false if this look decided the next move: then the drive must not go on with its check.
// WantsPlaceholder reads no more than the state and the acts of a record (at).
func (x *ways) oldStands() bool {
	k, first := &x.w.Ops[1], x.w.Ops[0].Rec
	if !x.slice.Skips || x.t == 0 || x.asksAgain() {
		return true
	}
	old := x.slice.read(x.p, first.Op)
	elder := intent.Relative{}
	switch at := (persist.Record{State: old.State, Acts: skippedActs(&old)}); {
	case intent.WantsPlaceholder(elder, first.Exists, &at):
		x.placehold()
		return false
	case intent.Successor{Early: k.Early}.IsStoppedBy(&old):
		x.out(FindsOldStands, "", nil, (*operation.Drive).OldFound)
		return false
	}
	return true
}

// placehold adds the states after one of the two writes of a placeholder, an ended record under the first key that keeps calls from beginning it: its Begin, and then
// its end. A crash may come between them. The second one need not be durable. After a failed write the check before the send is unsure (false), and nothing is sent.
func (x *ways) placehold() {
	s, first := x.slice, x.w.Ops[0].Rec
	next := persist.Record{Window: x.w.Ops[1].Rec.Op.Window, Pauses: operation.UsualPauses, Protected: x.w.Ops[1].Rec.Op.Protected}
	rec := intent.Placeholder(&next, persist.ID{}, "", began)
	did, durable := PlaceholderBegins, true
	if first.Exists {
		rec = intent.EndedPlaceholder(rec, began)
		did, durable = PlaceholderEnds, false
	}
	put := func(to *World) { s.write(to, 0, x.p, Rec{Exists: true, Op: plain(operation.OpOf(&rec, 0))}, durable) }
	x.out(did, "", put, func(*operation.Drive) {})
	if x.w.Left.Fails == 0 {
		return
	}
	fails := func(to *World) { to.Left.Fails-- }
	failed := func(d *operation.Drive) { d.Checked(false, s.now(x.w)) }
	x.out(PlaceholderFails, "", fails, failed)
	x.out(PlaceholderFailsWritten, "", func(to *World) { fails(to); put(to) }, failed)
}

// openSkipped adds the state after a Do of client p with key t, the first one, if a placeholder stands there: its caller is told what became of the next generation.
// It reports whether one stands there.
func (m *moves) openSkipped(w *World, p, t int) bool {
	s, op, next := m.slice, w.Ops[t].Rec.Op, &w.Ops[1]
	if !op.Skipped {
		return false
	}
	last := s.read(p, next.Rec.Op)
	call := operation.Call{Request: operation.Same, Replaced: next.Rec.Exists && intent.IsReplacedBy(&op, &last)}
	verdict := operation.Unknown
	switch call.Open(&op) {
	case operation.SaysReplaced:
		verdict = operation.Judge(last.Standing, operation.KeyOnly)
	case operation.SaysSkipped:
		// Only then it is certain that the next generation had no effect.
		if next.Rec.Exists || intent.LeftNothing(&op, false, next.Coming || s.noted(w, 1, s.process(p))) {
			verdict = operation.Judge(operation.Absent, operation.Same)
		}
	default:
		return false
	}
	to := *w
	to.Left.Calls--
	s.flush(&to)
	m.add(w, to, Event{By: int8(p), On: int8(t), Did: SaysRecorded, Told: toldOf(verdict)})
	return true
}

// skippedActs returns the acts of a record whose operation is this one, as far as the decisions ask for them.
func skippedActs(o *operation.Op) []persist.Act {
	if o.Skipped {
		return []persist.Act{{Did: persist.ActSkipped}}
	}
	return nil
}
