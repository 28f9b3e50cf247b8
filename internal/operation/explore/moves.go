package explore

import (
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// move is one thing that happens, and the state after it.
type move struct {
	event Event
	to    World
	bad   string // the broken invariant
}

// moves collects the possible events in one state.
type moves struct {
	slice *Slice
	all   []move
}

// add adds a move, after a check of its state against the invariants.
func (m *moves) add(from *World, to World, e Event) {
	for t := range to.Ops {
		for i := range to.Ops[t].Flying {
			to.Ops[t].Flying[i] = min(to.Ops[t].Flying[i], 2) // more can do no more
		}
	}
	bad := m.slice.breaks(from, &to, &e)
	for i := range to.Procs {
		if q := &to.Procs[i]; !q.Left && (!q.Active || q.Drive.Step() == operation.Over) {
			to.Procs[i] = Proc{}
		}
	}
	m.all = append(m.all, move{e, to, bad})
}

// moves returns all possible events in a state.
func (s *Slice) moves(w *World, into []move) []move {
	m := &moves{slice: s, all: into}
	for p := range w.Procs {
		switch {
		case w.Procs[p].Active:
			m.step(w, p)
		case w.Procs[p].Left:
			m.left(w, p)
		case s.hasClient(p):
			m.calls(w, p)
		}
	}
	m.crashes(w)
	for t := range w.Ops {
		m.person(w, t)
		m.network(w, t)
		m.coming(w, t)
	}
	if w.Left.Times > 0 && int(w.Time)+1 < len(s.Times) {
		to := *w
		to.Left.Times--
		to.Time++
		for t := range to.Ops {
			to.Ops[t].Flying = [3]int8{} // no network keeps it for so long: the last part of the window is for this
		}
		m.add(w, to, Event{By: nobody, Did: TimePasses})
	}
	return m.all
}

// hasClient reports whether there is a client in a place: a file has one, with two callers if they name no key.
func (s *Slice) hasClient(p int) bool { return p == 0 || s.Shared || s.Keyless }

// crashes kills a process. If the journal is a file of its own it may lose the writes not yet durable.
func (m *moves) crashes(w *World) {
	if w.Left.Crashes == 0 {
		return
	}
	for process := range 2 {
		to, busy := *w, false
		for p := range w.Procs {
			if m.slice.process(p) == process && m.slice.hasClient(p) {
				busy = busy || w.Procs[p].Active || w.Procs[p].Left
				to.Procs[p] = Proc{}
			}
		}
		for t := range to.Ops {
			busy = busy || to.Ops[t].Noted[process] || to.Ops[t].Rec != to.Ops[t].Disk
			to.Ops[t].Noted[process], to.Ops[t].NotedAt[process] = false, 0
		}
		if !busy || process > 0 && !m.slice.Shared {
			continue // it would change nothing
		}
		to.Left.Crashes--
		e := Event{By: int8(process), Did: Crashes}
		m.add(w, to, e)
		lost := to
		for t := range lost.Ops {
			lost.Ops[t].Rec = lost.Ops[t].Disk
		}
		if lost != to {
			e.Did = CrashLoses
			m.add(w, lost, e)
		}
	}
}

// network lets a lost send arrive, or go for good.
func (m *moves) network(w *World, t int) {
	for token, n := range w.Ops[t].Flying {
		if n == 0 {
			continue
		}
		gone := *w
		gone.Ops[t].Flying[token]--
		for _, r := range m.slice.react(w, t, int8(token), false) {
			to := gone
			if m.slice.do(&to, t, int8(token), &r); to != gone { // else nothing happens
				m.add(w, to, Event{By: nobody, On: int8(t), Did: LateSendArrives, Answer: r.answer.Text})
			}
		}
		m.add(w, gone, Event{By: nobody, On: int8(t), Did: LateSendIsGone})
	}
}

// coming lets the record of a lost Begin appear. If there is one by now, the journal keeps the existing one.
func (m *moves) coming(w *World, t int) {
	if !w.Ops[t].Coming {
		return
	}
	to := *w
	to.Ops[t].Coming = false
	m.add(w, to, Event{By: nobody, On: int8(t), Did: NeverArrives})
	if !w.Ops[t].Rec.Exists {
		then := *w
		then.Time = w.Ops[t].ComingAt
		m.slice.write(&to, t, nobody, Rec{Exists: true, Op: plain(m.slice.intent(&then, int(w.Ops[t].By)))}, true)
		to.Ops[t].Late = w.Ops[1-t].Intent == w.Ops[t].Intent && w.driven(1-t)
		m.add(w, to, Event{By: nobody, On: int8(t), Did: Arrives})
	}
}

// person lets people act, an Enqueue come beside, and a server forget.
func (m *moves) person(w *World, t int) {
	s, k := m.slice, &w.Ops[t]
	if w.Left.Acts == 0 {
		return
	}
	if s.Server == Forgets && k.Kept != 0 {
		to := *w
		to.Left.Acts--
		to.Ops[t].Kept, to.Ops[t].KeptAt, to.Ops[t].KeptWith = 0, 0, 0
		m.add(w, to, Event{By: nobody, On: int8(t), Did: ServerForgets})
	}
	if !k.Rec.Exists {
		return
	}
	op := k.Rec.Op
	act := func(by int, changed operation.Op, did Did) {
		to := *w
		to.Left.Acts--
		to.Ops[t].Decides = false // the actor knows the shown answer
		rec := *k.Rec
		rec.Op = plain(changed)
		s.write(&to, t, by, rec, true)
		m.add(w, to, Event{By: nobody, On: int8(t), Did: did})
	}
	if !s.Keyless && op.Promise(s.now(w)) == operation.PromisesNow {
		act(everybody, op.Promised(s.now(w).Add(maxAge)), EnqueuesBeside)
	}
	m.witness(w, t, act)
	if op.MayEnd(operation.Ending{Leased: w.leased(t, nobody)}) == operation.MayAct {
		act(nobody, op.Abandoned(), Abandons)
		if op.EverSent() {
			act(nobody, op.HeldFor(persist.HoldUndo), HoldsToUndo)
		}
		if effects := w.Intents[k.Intent].Effects; effects == 0 && !k.flying() && !w.driven(t) { // a person tells only the truth
			act(nobody, op.Settled(persist.EffectAbsent, 0), SettlesAbsent)
		}
	}
	if op.MayEnd(operation.Ending{Leased: w.leased(t, nobody), Happened: true}) == operation.MayAct && w.Intents[k.Intent].Effects > 0 {
		act(nobody, op.Settled(persist.EffectHappened, 0), SettlesHappened)
	}
	if s.Rekeys {
		m.rekey(w, t, act)
	}
	if s.Redrives && t == 0 {
		m.redrive(w, act)
	}
}

// redrive does one part of a Redrive of the first key, or takes its settlement back. A Redrive may be cut off between its parts.
func (m *moves) redrive(w *World, act func(int, operation.Op, Did)) {
	s, k, other := m.slice, &w.Ops[0], w.Ops[1].Rec
	op := k.Rec.Op
	taken := other.Exists && !other.Op.Replaces
	if !k.Rec.Named && op.MayAnew(operation.Redrives, operation.Successors{Taken: taken}, s.now(w)) == operation.MayAct {
		to := *w
		to.Left.Acts--
		named := *k.Rec
		named.Named = true
		s.write(&to, 0, nobody, named, true)
		m.add(w, to, Event{By: nobody, Did: RedriveNames})
	}
	if k.Rec.Named && !other.Exists {
		to := *w
		to.Left.Acts--
		next := operation.Op{Protected: op.Protected, Generated: op.Generated, Standing: operation.Open, Window: op.Window, Pauses: op.Pauses, Replaces: true, Results: op.Results}
		s.write(&to, 1, nobody, Rec{Exists: true, Op: plain(next.Promised(s.now(w).Add(maxAge)))}, true)
		to.Ops[1].Meta = Meta{Intent: k.Intent, By: k.By}
		to.Ops[0].Dead = true
		m.add(w, to, Event{By: nobody, Did: RedriveBegins})
	}
	if op.MayAnew(operation.Unsettles, operation.Successors{Replaced: k.Rec.Named, Higher: other.Exists}, s.now(w)) == operation.MayAct {
		act(nobody, op.Reopened(), TakesBack)
	}
}

// successors returns what stands in the place of an operation. The other key stands for its next generation.
func (w *World) successors(t int) operation.Successors {
	other := w.Ops[1-t].Rec
	return operation.Successors{Replaced: other.Exists && other.Op.Replaces, Taken: other.Exists && !other.Op.Replaces}
}

// witness lets an event of the API come. It tells the truth: the operation took effect under this key. Whoever drives the operation finds the
// evidence at the end.
func (m *moves) witness(w *World, t int, act func(int, operation.Op, Did)) {
	k := &w.Ops[t]
	op := k.Rec.Op
	if m.slice.Witness && k.Effects > 0 && !op.Witnessed && op.Testimony(false) == operation.Testifies {
		act(everybody, op.WithEvidence(), EventComes)
	}
	if m.slice.Mistaken && !op.Witnessed && op.Testimony(false) == operation.Contradicts {
		if op.Witnessed = true; op.Standing == operation.Absent {
			op.Standing = operation.Ended // StandingOf the record with its evidence
		}
		act(nobody, op, EventContradicts)
	}
}

// rekey does one part of a Rekey. A Rekey may be cut off after each part.
func (m *moves) rekey(w *World, t int, act func(int, operation.Op, Did)) {
	s, k := m.slice, &w.Ops[t]
	op, effects := k.Rec.Op, w.Intents[k.Intent].Effects
	switch {
	case op.Replaces && op.Waits() && w.Ops[1-t].Rec.Op.Standing == operation.Absent:
		act(nobody, op.Promised(s.now(w).Add(maxAge)), RekeyLetsGo)
	case op.State.Final():
		if op.MayAnew(operation.Rekeys, w.successors(t), s.now(w)) == operation.MayAct && !w.Ops[1-t].Rec.Exists && !k.Free {
			to := *w
			to.Left.Acts--
			next := operation.Op{Protected: op.Protected, Generated: op.Generated, Standing: operation.Open, Window: op.Window, Pauses: op.Pauses, Replaces: true, Results: op.Results}
			s.write(&to, 1-t, nobody, Rec{Exists: true, Op: plain(next.HeldFor(persist.HoldRekey))}, true)
			to.Ops[1-t].Meta = Meta{Intent: k.Intent, By: k.By}
			to.Ops[t].Dead = true
			m.add(w, to, Event{By: nobody, On: int8(t), Did: RekeyBegins})
		}
	case op.MayLookBefore(w.leased(t, nobody), true) == operation.MayAct:
		held, changes := op.HeldToRekey(began)
		switch {
		case changes:
			act(nobody, held, HoldsToRekey)
		case w.driven(t) || k.flying(): // a send may still be on its way: nobody asks before its end
		default:
			finding := classify.FindingNone
			if effects > 0 {
				finding = classify.FindingSame
			}
			for _, f := range [...]classify.Finding{finding, classify.FindingUnclear} {
				if operation.RekeyFound(f) {
					act(nobody, op.Settled(persist.EffectAbsent, 0), RekeyFindsNothing)
				} else {
					act(nobody, op.NotRekeyed(op), RekeyFindsIt)
				}
			}
		}
	}
}
