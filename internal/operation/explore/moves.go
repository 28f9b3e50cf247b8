package explore

import (
	"github.com/oncehttp/oncehttp/internal/acts"
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

// add adds to as a state that may follow from, by the event e, after a check of the step against the invariants. It counts no more than two late sends of a
// kind (Flying), notes that a caller may go on to the next try (GoesOn), and clears the clients that are done.
func (m *moves) add(from *World, to World, e Event) {
	for t := range to.Ops {
		for i := range to.Ops[t].Flying {
			to.Ops[t].Flying[i] = min(to.Ops[t].Flying[i], 2) // more can do no more
		}
	}
	to.Ops[0].GoesOn = to.Ops[0].GoesOn || m.slice.Skips && (to.Ops[0].Free || to.Ops[0].Refused)
	bad := m.slice.breaks(from, &to, &e)
	for i := range to.Procs {
		if q := &to.Procs[i]; !q.Left && (!q.Active || q.Drive.Step() == operation.Over) {
			to.Procs[i] = Proc{}
		}
	}
	m.all = append(m.all, move{e, to, bad})
}

// moves appends to into all events possible in the state w, each with the state after it. The search follows them all.
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

// hasClient reports whether there is a client in place p, 0 or 1: a file has one, with two callers if they name no key.
func (s *Slice) hasClient(p int) bool { return p == 0 || s.Shared || s.Keyless }

// crashes adds the crash of each process. A crash may also lose the journal's writes that are not durable yet. A crash that changes nothing is left
// out.
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

// network adds the states after the late arrival of a send of key t, lost on its way before, or after its loss for ever. Flying has their numbers, by the
// server's token with which they were sent.
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

// coming lets the record of a lost Begin under key t appear, as it was begun at its time, or never. If there is one by now, the journal keeps the existing one.
// Late: the same is wanted and driven under the other key, and no look before could find this one.
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

// person adds the states after an event from outside at key t: a person acts on the operation, an Enqueue promises it, an event of the API comes, or the server
// forgets its answer. act adds a state with a changed record; by is the client that writes it, or nobody, or everybody: the others' copies are stale then.
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
	if !s.Keyless && operation.PromiseOf(&op, s.now(w)) == operation.PromisesNow {
		act(everybody, op.Promised(s.now(w).Add(maxAge)), EnqueuesBeside)
	}
	m.witness(w, t, act)
	if (acts.Ending{Leased: w.leased(t, nobody)}).MayEnd(&op) == acts.MayAct {
		act(nobody, acts.Abandoned(op), Abandons)
		if op.EverSent() {
			act(nobody, acts.HeldFor(op, persist.HoldUndo), HoldsToUndo)
		}
		if effects := w.Intents[k.Intent].Effects; effects == 0 && !k.flying() && !w.driven(t) { // a person tells only the truth
			act(nobody, acts.Settled(op, persist.EffectAbsent, 0), SettlesAbsent)
		}
	}
	if (acts.Ending{Leased: w.leased(t, nobody), Happened: true}).MayEnd(&op) == acts.MayAct && w.Intents[k.Intent].Effects > 0 {
		act(nobody, acts.Settled(op, persist.EffectHappened, 0), SettlesHappened)
	}
	if s.Rekeys {
		m.rekey(w, t, act)
	}
	if s.Redrives && t == 0 {
		m.redrive(w, act)
	}
}

// redrive adds the states after one part of a Redrive of the first key's operation, since a Redrive may be cut off between its parts; or after an Unsettle,
// which takes its settlement back. The parts: the record of the first key names the second one (Named), and the second operation begins. act adds a state with
// a changed record.
func (m *moves) redrive(w *World, act func(int, operation.Op, Did)) {
	s, k, other := m.slice, &w.Ops[0], w.Ops[1].Rec
	op := k.Rec.Op
	taken := other.Exists && !other.Op.Replaces
	if !k.Rec.Named && acts.Redrives.MayAnew(&op, acts.Successors{Taken: taken}, s.now(w)) == acts.MayAct {
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
		s.write(&to, 1, nobody, Rec{Exists: true, Op: plain(inPlaceOf(&op).Promised(s.now(w).Add(maxAge)))}, true)
		to.Ops[1].Meta = Meta{Intent: k.Intent, By: k.By}
		to.Ops[0].Dead = true
		m.add(w, to, Event{By: nobody, Did: RedriveBegins})
	}
	if acts.Unsettles.MayAnew(&op, acts.Successors{Replaced: k.Rec.Named, Higher: other.Exists}, s.now(w)) == acts.MayAct {
		act(nobody, acts.Reopened(op), TakesBack)
	}
}

// inPlaceOf returns the operation that a person's Redrive or Rekey begins in the place of old: of the same request, and
// never sent.
func inPlaceOf(old *operation.Op) operation.Op {
	return operation.Op{
		Phase:    operation.Phase{Standing: operation.Open},
		KeyFacts: operation.KeyFacts{Protected: old.Protected, Generated: old.Generated},
		Sending:  operation.Sending{Window: old.Window, Pauses: old.Pauses},
		Replaces: true, Results: old.Results,
	}
}

// successors returns the facts about what stands in the place of key t's operation. In the model the other of the two
// keys is its next generation.
func (w *World) successors(t int) acts.Successors {
	other := w.Ops[1-t].Rec
	return acts.Successors{Replaced: other.Exists && other.Op.Replaces, Taken: other.Exists && !other.Op.Replaces}
}

// witness lets an event of the API about key t's operation arrive. With Witness it is true: the operation took effect under this key. With Mistaken it
// contradicts a recorded end without an effect, true or not. A drive under way finds the evidence at its end. act adds a state with a changed record.
func (m *moves) witness(w *World, t int, act func(int, operation.Op, Did)) {
	k := &w.Ops[t]
	op := k.Rec.Op
	if m.slice.Witness && k.Effects > 0 && !op.Witnessed && acts.TestimonyOf(&op, false) == acts.Testifies {
		act(everybody, acts.WithEvidence(op), EventComes)
	}
	if m.slice.Mistaken && !op.Witnessed && acts.TestimonyOf(&op, false) == acts.Contradicts {
		if op.Witnessed = true; op.Standing == operation.Absent {
			op.Standing = operation.Ended // StandingOf the record with its evidence
		}
		act(nobody, op, EventContradicts)
	}
}

// rekey adds the states after one part of a Rekey, a person's begin of key t's operation under the other key. A Rekey
// may be cut off after each part. act adds a state with a changed record.
func (m *moves) rekey(w *World, t int, act func(int, operation.Op, Did)) {
	s, k := m.slice, &w.Ops[t]
	op, effects := k.Rec.Op, w.Intents[k.Intent].Effects
	switch {
	// The last part: the new operation may be sent.
	case op.Replaces && acts.WaitsForRelease(&op) && w.Ops[1-t].Rec.Op.Standing == operation.Absent:
		act(nobody, op.Promised(s.now(w).Add(maxAge)), RekeyLetsGo)
	case op.State.Final():
		if acts.Rekeys.MayAnew(&op, w.successors(t), s.now(w)) == acts.MayAct && !w.Ops[1-t].Rec.Exists && !k.Free {
			to := *w
			to.Left.Acts--
			s.write(&to, 1-t, nobody, Rec{Exists: true, Op: plain(acts.HeldFor(inPlaceOf(&op), persist.HoldRekey))}, true)
			to.Ops[1-t].Meta = Meta{Intent: k.Intent, By: k.By}
			to.Ops[t].Dead = true
			m.add(w, to, Event{By: nobody, On: int8(t), Did: RekeyBegins})
		}
	// The first part, of an operation that has not ended: it is held, and looked up once no send of it is on its way.
	case acts.MayLookBefore(&op, w.leased(t, nobody), true) == acts.MayAct:
		held, changes := acts.HeldToRekey(op, began)
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
				if acts.RekeyFound(f) {
					act(nobody, acts.Settled(op, persist.EffectAbsent, 0), RekeyFindsNothing)
				} else {
					act(nobody, acts.NotRekeyed(op, op), RekeyFindsIt)
				}
			}
		}
	}
}
