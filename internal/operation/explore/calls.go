package explore

import (
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// calls adds the states in which client p of the explored model begins a call or a pass, if the search's bounds leave one. The model has two keys, 0 and 1. The
// second is for a next try or a replacement of the first, and is used only once that may be: a caller was told that the first had no effect (GoesOn, Free) or was
// refused, or the second has a record. Callers without a key (Keyless) use either. It is called for a client that does nothing.
func (m *moves) calls(w *World, p int) {
	if w.Left.Calls == 0 {
		return
	}
	if !m.slice.Keyless {
		m.call(w, p, 0)
		next := m.slice.Skips && (w.Ops[0].GoesOn || w.Ops[1].Rec.Exists) || m.slice.Redrives && w.Ops[0].Rec.Exists && (w.Ops[0].Refused || w.Ops[0].Free) // its caller may begin the next generation
		if m.slice.Rekeys && w.Ops[1].Rec.Exists || next {
			m.call(w, p, 1)
		} else if m.slice.Redrives && w.Ops[1].Rec.Exists {
			m.pass(w, p, 1)
		}
		return
	}
	for t := range w.Ops {
		k := &w.Ops[t]
		switch {
		case k.Rec.Exists && int(k.Intent) == p: // the caller knows the key from an error
			m.call(w, p, t)
		case k.Rec.Exists:
			m.pass(w, p, t)
		}
	}
	m.callWithoutKey(w, p)
}

// callWithoutKey adds the states after a Do without a key by client p. It begins under a key without a record, if no record under another key stops it (like), and
// this process knows of no lost Begin (noted, Coming) that may bring one. A record does not stop it while a call of its own process drives that one with no doubt
// before (Undoubted): that call tells the end. Nothing is added once the client's caller has an answer: it wants nothing more.
func (m *moves) callWithoutKey(w *World, p int) {
	s := m.slice
	if w.Intents[p].Done {
		return
	}
	free := -1
	for t := range w.Ops {
		k := &w.Ops[t]
		like := intent.Lookalike{Leased: s.Shared && w.leased(t, p)}
		for q := range w.Procs {
			other := &w.Procs[q]
			like.Undoubted = like.Undoubted || other.Active && int(other.On) == t && s.process(q) == s.process(p) && !other.Doubted
		}
		switch {
		case k.Rec.Exists && like.InTheWay(&k.Rec.Op) != intent.NotInTheWay, !k.Rec.Exists && s.noted(w, t, s.process(p)):
			return // it hears of an unknown outcome; this changes nothing
		case !k.Rec.Exists && !k.Coming:
			free = t
		}
	}
	if free >= 0 {
		m.begin(w, p, free)
	}
}

// call adds the states after a call of client p under key t (one of the two keys of the model): a Do with the key, or a pass over an existing operation. The Do
// comes without facts of its own (the empty Given). In a slice (one searched setting) with Enqueued, an Enqueue begins each operation.
func (m *moves) call(w *World, p, t int) {
	s, k := m.slice, &w.Ops[t]
	if !k.Rec.Exists {
		if s.Enqueued {
			m.enqueue(w, p, t)
			return
		}
		m.begin(w, p, t)
		return
	}
	m.pass(w, p, t)
	m.open(w, p, t, operation.Given{})
}

// open adds the states after a Do of client p that finds the existing operation of key t: package operation decides how the call reacts. g is the call's
// knowledge. A client that cannot compare (CannotTell) knows nothing of a request begun by the other one. An end that the server would not give again (Stored) is
// flushed before it is told, and so is an end without an effect: a crash must not lose them. "No effect" is noted as told (tell), unless the operation goes on
// under another key (Dead): callers are not free then.
func (m *moves) open(w *World, p, t int, g operation.Given) {
	s, k := m.slice, &w.Ops[t]
	if m.openSkipped(w, p, t) {
		return
	}
	to, op := *w, s.read(p, k.Rec.Op)
	to.Left.Calls--
	knows := operation.Same
	if s.Configs[p].CannotTell && int(k.By) != p {
		knows = operation.Incomparable
	}
	e := Event{By: int8(p), On: int8(t)}
	switch (operation.Call{Request: knows}).Open(&op) {
	case operation.Adopts:
		m.adopt(w, p, t, g, GoesOn)
	case operation.AsksAgain:
		m.askAgain(w, p, t)
	case operation.GivesAnswer:
		if !k.Rec.Stored {
			s.flush(&to)
		}
		told := *k.Rec
		told.Op.Unreported = false
		to.Ops[t].Rec = s.rec(told)
		e.Did, e.Told, e.Status = GivesRecorded, ToldAnswer, int16(op.Status)
		tell(&to, t, op.Standing)
		m.add(w, to, e)
	default:
		if knows == operation.Same && op.State.Final() && op.Standing.Effect() != persist.EffectHappened {
			s.flush(&to)
		}
		verdict := operation.Judge(op.Standing, knows)
		if verdict == operation.NoEffect && !k.Dead {
			tell(&to, t, operation.Absent)
		}
		e.Did, e.Told = SaysRecorded, toldOf(verdict)
		m.add(w, to, e)
	}
}

// pass adds the states in which client p, by Resume or Run, begins to send the pending operation of key t, unless it has to wait.
func (m *moves) pass(w *World, p, t int) {
	op := w.Ops[t].Rec.Op
	if op.State.Final() {
		return
	}
	switch operation.ProspectOf(&op, m.slice.now(w)) {
	case operation.WaitsForWord, operation.WaitsForTruth, operation.WaitsForTime:
	default:
		m.adopt(w, p, t, operation.Given{Pass: true}, PassGoesOn)
	}
}

// toldOf returns the result that a caller of the model is told for the verdict of an error.
func toldOf(v operation.Verdict) Told {
	return [...]Told{operation.Unknown: ToldUnknown, operation.NoEffect: ToldNoEffect, operation.Final: ToldFinal}[v]
}

// begin adds the states after a Begin by client p under key t, one for each possible result: begun, or failed in the ways of a journal. After a failure the
// record is missing (before) or there (written). A Begin that shows ends this process's note of a lost one (Noted, Coming). Early: the first key's operation
// had not ended when the second's was begun.
func (m *moves) begin(w *World, p, t int) {
	s := m.slice
	if t == 1 && !m.mayBeginNext(w, p) {
		return
	}
	op, to := s.intent(w, p), *w
	to.Left.Calls--
	k := &to.Ops[t]
	k.Early = s.Skips && t == 1 && !w.Ops[0].Rec.Op.State.Final()
	if k.By, k.Intent, k.SentWith = int8(p), 0, 0; s.Keyless { // under a key never used
		k.Meta = Meta{By: int8(p), Intent: int8(p)}
	}
	k.Free = false
	before := to
	s.write(&to, t, p, Rec{Exists: true, Op: op}, true)
	written := to
	k.Noted[s.process(p)], k.NotedAt[s.process(p)], k.Coming = false, 0, false
	g := s.given(&to, p, t, operation.Given{Created: true})
	to.Procs[p] = Proc{s.drive(operation.NewDrive(s.read(p, op), s.Configs[p].Limits, g)), State{Active: true, On: int8(t), Caller: true, Plain: s.Plain, Created: true}}
	m.add(w, to, Event{By: int8(p), On: int8(t), Did: Begins})
	if !s.BeginFail || w.Left.Fails == 0 {
		return
	}
	m.beginFails(w, before, p, t, false, BeginFails)
	m.beginFails(w, before, p, t, true, BeginUncertain)
	m.beginFails(w, written, p, t, true, BeginUncertainWritten)
	if s.Shared { // a statement may be on its way to the server
		before.Ops[t].Coming, before.Ops[t].ComingAt = true, w.Time
		m.beginFails(w, before, p, t, true, BeginComes)
	}
}

// beginFails adds to, the state after a failed Begin of client p under key t, with the result that its caller is told. uncertain (this process then keeps a
// note, Noted): the record may be in the journal, or may appear yet.
func (m *moves) beginFails(w *World, to World, p, t int, uncertain bool, did Did) {
	s := m.slice
	to.Left.Fails--
	if uncertain {
		to.Ops[t].Noted[s.process(p)], to.Ops[t].NotedAt[s.process(p)] = true, w.Time
	}
	f := intent.FailedBegin{Uncertain: uncertain, Shared: s.Shared, Key: intent.CallKey{Keyless: s.Keyless, Random: s.Generated || s.Keyless}}
	told := operation.Unknown
	if f.Looks() {
		at := intent.AtKey{Glance: intent.SeesNone, MayAppear: s.noted(&to, t, s.process(p))}
		if at.Says() == intent.SaysNothing {
			told = operation.Judge(operation.None, operation.Unread)
		}
	}
	if told == operation.NoEffect {
		tell(&to, t, operation.Absent)
	}
	m.add(w, to, Event{By: int8(p), On: int8(t), Did: did, Told: toldOf(told)})
}

// enqueue adds the states after an Enqueue of client p under key t: the operation is begun, and a later pass sends it.
func (m *moves) enqueue(w *World, p, t int) {
	to := *w
	to.Left.Calls--
	to.Ops[t].By = int8(p)
	to.Ops[t].Free = false
	m.slice.write(&to, t, p, Rec{Exists: true, Op: m.slice.intent(w, p)}, true)
	m.add(w, to, Event{By: int8(p), On: int8(t), Did: Enqueues})
}

// adopt adds the states in which client p takes over the existing operation of key t, to send it (the event did): with the record marked before the send, too late
// to send, or with a failed mark. g is the call's knowledge. A send of a client without its lease may still arrive (deserted). Decides: a caller of plain HTTP may
// act on an answer it was shown, until a call comes. Nothing is added if another client has the operation, or this one may not act on it.
func (m *moves) adopt(w *World, p, t int, g operation.Given, did Did) {
	s, rec := m.slice, *w.Ops[t].Rec
	if s.Configs[p].Lacks || w.leased(t, p) {
		return
	}
	to, op := *w, s.read(p, rec.Op)
	to.Left.Calls--
	g = s.given(w, p, t, g).After(&op.Sending)
	proc := Proc{State: State{Active: true, On: int8(t), Pass: g.Pass, Caller: !g.Pass, Plain: s.Plain && !g.Pass, Doubted: rec.Op.MaybeSent, Held: rec.Op.State == persist.StateHeld, Created: g.Created}}
	e := Event{By: int8(p), On: int8(t), Did: did}
	if operation.Adopt(&op, s.now(w), false) == operation.IsProven {
		m.prove(to, p, t, g.Pass)
		return
	}
	if operation.Adopt(&op, s.now(w), false) == operation.IsLate {
		proc.Drive = s.drive(operation.Overdue(op, s.Configs[p].Limits, g))
		to.Procs[p] = proc
		m.add(w, to, e)
		return
	}
	unmarked := to
	if w.deserted(t, p) {
		rec.Op.Deserted = began.Add(window)
	}
	rec.Op = plain(rec.Op.Marked(s.now(w), s.now(w)))
	s.write(&to, t, p, rec, true)
	to.Ops[t].Noted[s.process(p)], to.Ops[t].NotedAt[s.process(p)] = false, 0
	to.Ops[t].Decides = to.Ops[t].Decides && g.Pass // else the caller has come back
	marked := to
	proc.Drive = s.drive(operation.NewDrive(s.read(p, rec.Op), s.Configs[p].Limits, g))
	to.Procs[p] = proc
	m.add(w, to, e)
	if w.Left.Fails > 0 {
		unmarked.Left.Fails--
		m.add(w, unmarked, Event{By: int8(p), On: int8(t), Did: MarkFails})
		marked.Left.Fails--
		m.add(w, marked, Event{By: int8(p), On: int8(t), Did: MarkFailsWritten})
	}
}

// prove adds the move in which process p settles operation t as happened, by the evidence of an event and without a drive; and the same with a failure of the
// journal, before or after the write. pass: a pass does it, and no call. Of OwedFrom only the presence of a time counts in the model.
func (m *moves) prove(w World, p, t int, pass bool) {
	s, from, rec := m.slice, w, *w.Ops[t].Rec
	rec.Op = plain(acts.Settled(rec.Op, persist.EffectHappened, 0))
	rec.Op.Unreported, rec.Op.OwedFrom = pass && rec.Op.Generated, began
	to := w
	s.write(&to, t, p, rec, true)
	e := Event{By: int8(p), On: int8(t), Did: EvidenceSettles}
	if !pass {
		e.Told = toldOf(operation.Judge(rec.Op.Standing, operation.Same))
	}
	m.add(&from, to, e)
	if w.Left.Fails > 0 {
		from.Left.Fails--
		to.Left.Fails--
		e.Told = ToldUnknown
		m.add(&w, from, e)
		m.add(&w, to, e)
	}
}

// askAgain adds the state in which client p asks the server again, under key t, for an answer too large to keep. Nothing is added if the client may not act
// (Lacks), another client has the operation, or the server may have forgotten the key.
func (m *moves) askAgain(w *World, p, t int) {
	s, to := m.slice, *w
	cfg, op := &s.Configs[p], s.read(p, w.Ops[t].Rec.Op)
	if cfg.Lacks || w.leased(t, p) || cfg.Limits.ClockAt(op.FirstSent, s.now(w), op.Window) != operation.InWindow {
		return
	}
	to.Left.Calls--
	g := s.given(w, p, t, operation.Given{AskedAgain: true})
	to.Procs[p] = Proc{s.drive(operation.NewDrive(op, cfg.Limits, g)), State{Active: true, On: int8(t), Caller: true, Plain: s.Plain}}
	m.add(w, to, Event{By: int8(p), On: int8(t), Did: AsksAgain})
}

// tell notes in the state w that a caller is told that the operation of key t stands so: it is paid, refused, or free for another key. With an answer the
// caller's intent is done: it wants nothing more. The rules then check later events against that.
func tell(w *World, t int, s operation.Standing) {
	k := &w.Ops[t]
	switch s.Effect() {
	case persist.EffectHappened:
		k.Paid, w.Intents[k.Intent].Done = true, true
	case persist.EffectRefused:
		k.Refused, w.Intents[k.Intent].Done = true, true
	case persist.EffectAbsent:
		k.Free = true
	}
}
