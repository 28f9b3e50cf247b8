package explore

import (
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// move is one thing that happens, and the state after it.
type move struct {
	what what
	to   World
	bad  string // the invariant that it breaks
}

// what is one thing that happens, in words.
type what struct {
	by   int8 // the process; nobody: none of them
	text string
	more string
}

// Who has changed a record, beside the processes.
const (
	nobody    = -1 // a person
	everybody = -2 // an Enqueue: each drive takes its mark, and goes on
)

// String returns the thing as a line.
func (x what) String() string {
	if x.by == nobody {
		return x.text + x.more
	}
	return fmt.Sprintf("process %d: %s%s", x.by, x.text, x.more)
}

// moves collects what may happen in one state.
type moves struct {
	slice *Slice
	all   []move
}

// add adds a move, once its state has been held against the invariants.
func (m *moves) add(from *World, to World, by int, text, more string) {
	for i := range to.Procs {
		if !to.Procs[i].Active {
			to.Procs[i] = Proc{}
		}
	}
	to.Flying = min(to.Flying, 2) // more can do no more
	m.all = append(m.all, move{what{int8(by), text, more}, to, m.slice.breaks(from, &to)})
}

// moves returns all that may happen in a state.
func (s *Slice) moves(w *World) []move {
	m := &moves{slice: s}
	for p := range s.Processes {
		if w.Procs[p].Active {
			m.step(w, p)
			m.crash(w, p)
		} else {
			m.begin(w, p)
		}
	}
	m.person(w)
	if w.Flying > 0 {
		for _, r := range s.react(w, false) {
			if r.server != w.Server { // else nothing happens
				to := *w
				to.Flying--
				to.Server = r.server
				m.add(w, to, nobody, "a lost send arrives late, and the server ", r.answer.text)
			}
		}
		to := *w
		to.Flying--
		m.add(w, to, nobody, "a lost send is gone for good", "")
	}
	if w.Left.Times > 0 && int(w.Time)+1 < len(times) {
		to := *w
		to.Left.Times--
		to.Time++
		to.Flying = 0 // no network keeps it for so long: the last part of the window is for that
		m.add(w, to, nobody, "time goes on past the next boundary", "")
	}
	return m.all
}

// begin begins a drive: a caller's Do, or a pass.
func (m *moves) begin(w *World, p int) {
	if w.Left.Calls == 0 {
		return
	}
	to := *w
	to.Left.Calls--
	s := m.slice
	if !w.Rec.Exists {
		op := s.intent(w)
		s.write(&to, p, Rec{true, op}, true)
		to.Told = Told{}
		to.Procs[p] = Proc{Active: true, Caller: true, Drive: operation.NewDrive(op, client(), s.given(operation.Given{Created: true}))}
		m.add(w, to, p, "Do begins the operation", "")
		return
	}
	switch opening := w.Rec.Op.Open(operation.Call{Request: operation.Same}); opening {
	case operation.Adopts:
		m.adopt(w, to, p, operation.Given{}, "Do goes on with it")
		if w.Rec.Op.State == persist.StatePending {
			m.adopt(w, to, p, operation.Given{Pass: true}, "a pass goes on with it")
		}
	case operation.GivesAnswer:
		to.Disk = to.Rec // it is flushed before, or the same key finds it again
		tell(&to, w.Rec.Op.Standing)
		m.add(w, to, p, "Do gives the recorded answer", "")
	default:
		to.Disk = to.Rec
		verdict := operation.Judge(w.Rec.Op.Standing, operation.Same)
		if verdict == operation.NoEffect {
			tell(&to, operation.Absent)
		}
		m.add(w, to, p, "Do sends nothing: ", verdicts[verdict])
	}
}

// adopt goes on with an operation that stands, unless another process has it.
func (m *moves) adopt(w *World, to World, p int, g operation.Given, text string) {
	other := &w.Procs[1-p]
	if other.Active && !other.Lost {
		return
	}
	s, op := m.slice, w.Rec.Op
	g = op.Begins(s.given(g))
	proc := Proc{Active: true, Caller: !g.Pass}
	switch op.Adopt(w.now(), false) {
	case operation.IsLate:
		proc.Drive = operation.Overdue(op, client(), g)
	default:
		op = plain(op.Marked(w.now(), w.now()))
		s.write(&to, p, Rec{true, op}, true)
		proc.Drive = operation.NewDrive(op, client(), g)
	}
	to.Procs[p] = proc
	m.add(w, to, p, text, "")
}

// crash kills a process. A journal that is its own file may lose what is not durable.
func (m *moves) crash(w *World, p int) {
	if w.Left.Crashes == 0 {
		return
	}
	to := *w
	to.Left.Crashes--
	to.Procs[p] = Proc{}
	m.add(w, to, p, "a crash", "")
	if to.Rec != to.Disk {
		to.Rec = to.Disk
		m.add(w, to, p, "a crash, and what was not durable is lost", "")
	}
}

// person acts: nobody else has the operation then.
func (m *moves) person(w *World) {
	if w.Left.Acts == 0 || !w.Rec.Exists || w.Rec.Op.State.Final() {
		return
	}
	busy := false
	for i := range w.Procs {
		busy = busy || w.Procs[i].Active && !w.Procs[i].Lost
	}
	act := func(by int, change func(*operation.Op), text string) {
		to := *w
		to.Left.Acts--
		rec := w.Rec
		change(&rec.Op)
		rec.Op = plain(rec.Op)
		m.slice.write(&to, by, rec, true)
		m.add(w, to, nobody, text, "")
	}
	act(everybody, func(o *operation.Op) {
		o.Enqueued, o.SendBefore = true, w.now().Add(window)
		if o.State == persist.StateHeld && (o.Hold == persist.HoldCaller || o.Hold == persist.HoldExpired && !o.MaybeSent) {
			o.State, o.Hold = persist.StatePending, ""
		}
	}, "an Enqueue promises that it will be sent")
	if busy {
		return
	}
	act(nobody, func(o *operation.Op) {
		o.State, o.Hold = persist.StateAbandoned, ""
		o.Standing = operation.StandingOf(&persist.Record{State: o.State})
	}, "a person abandons it")
	if w.Server.Effects > 0 { // a person says only what is so
		act(nobody, func(o *operation.Op) {
			o.State, o.Hold, o.Standing = persist.StateSettled, "", operation.Happened
		}, "a person settles it as happened")
	} else if w.Flying == 0 {
		act(nobody, func(o *operation.Op) {
			o.State, o.Hold, o.Standing = persist.StateSettled, "", operation.Absent
		}, "a person settles it as absent")
	}
}

// step does the step of a drive, in every way in which it may come out.
func (m *moves) step(w *World, p int) {
	proc := w.Procs[p]
	// drive adds what becomes of the step if it comes out so.
	drive := func(text string, change func(*World), did func(*operation.Drive)) {
		to := *w
		if change != nil {
			change(&to)
		}
		d := to.Procs[p].Drive
		did(&d)
		to.Procs[p].Drive = d
		m.over(w, to, p, text)
	}
	now := w.now()
	switch proc.Drive.Step() {
	case operation.Check:
		if !proc.Stale {
			drive("the lease is checked", nil, func(d *operation.Drive) { d.Checked(true, now) })
		}
		if proc.Stale || proc.Lost {
			drive("the lease is gone", nil, func(d *operation.Drive) { d.Checked(false, now) })
		} else if m.slice.Processes > 1 {
			to := *w
			to.Procs[p].Lost = true
			m.add(w, to, p, "it freezes, and its lease ends", "")
		}
	case operation.Send:
		m.send(w, p, drive)
	case operation.AskFirst:
		m.ask(w, drive)
	case operation.Draw:
		drive("a wait is drawn", nil, func(d *operation.Drive) { d.Drawn(operation.Drawn{}, now) })
		drive("the call is given up", nil, func(d *operation.Drive) { d.Drawn(operation.Drawn{GivenUp: true}, now) })
	case operation.Wait:
		drive("it waits", nil, func(d *operation.Drive) { d.Waited(true) })
	case operation.LookForPlace:
		drive("no other scope has the key", nil, func(d *operation.Drive) { d.PlaceFound(false, true) })
	case operation.LookForOther:
		drive("it looks for the key again", nil, func(d *operation.Drive) { d.OtherFound(w.Rec.Exists) })
	case operation.Write:
		m.write(w, p, drive)
	case operation.Flush:
		drive("it is flushed", func(to *World) { to.Disk = to.Rec }, func(d *operation.Drive) { d.Flushed(true) })
		if w.Left.Fails > 0 {
			drive("the flush fails", func(to *World) { to.Left.Fails-- }, func(d *operation.Drive) { d.Flushed(false) })
		}
	default:
		panic(fmt.Sprintf("no step %d", proc.Drive.Step()))
	}
}

// stepper adds one way in which a step comes out.
type stepper func(text string, change func(*World), did func(*operation.Drive))

// send does the step Send.
func (m *moves) send(w *World, p int, drive stepper) {
	s, proc := m.slice, w.Procs[p]
	d := proc.Drive
	unsent := classify.Verdict{Kind: classify.KindNotSent}
	if stop := d.MayLeave(w.now(), true); stop != operation.GoesOn {
		drive("it may not leave any more", nil, func(d *operation.Drive) {
			d.Sent(unsent, operation.Sent{Unsent: true, TooOld: stop == operation.TooOld})
		})
		return
	}
	again := unsent
	again.Again = true
	drive("no connection is had", nil, func(d *operation.Drive) { d.Sent(again, operation.Sent{Unsent: true, Down: w.now().Add(time.Second)}) })
	if w.Left.Sends == 0 {
		return
	}
	lost := func(d *operation.Drive) { d.Sent(classify.Verdict{Again: true}, operation.Sent{Sends: 1}) }
	drive("the send is lost", func(to *World) { to.Left.Sends--; to.Flying++ }, lost)
	lostAfter := map[Server]bool{}
	for _, r := range s.react(w, w.Flying > 0 || w.Procs[1-p].Active) {
		serve := func(to *World) { to.Left.Sends--; to.Server = r.server }
		drive("the server "+r.answer.text, serve, func(d *operation.Drive) {
			d.Sent(s.verdict(d, &r.answer), operation.Sent{Sends: 1, Answer: operation.Answer{ID: 1, Status: r.answer.status}})
		})
		if r.server != w.Server && !lostAfter[r.server] { // a lost answer of a server that did nothing is a lost send that is gone
			lostAfter[r.server] = true
			drive("the server "+r.answer.text+", and the answer is lost", serve, lost)
		}
	}
}

// ask does the step AskFirst: the API knows the resource by its reference, or does not tell.
func (m *moves) ask(w *World, drive stepper) {
	drive("the lookup does not tell", nil, func(d *operation.Drive) {
		d.Asked(classify.FindingUnclear, operation.Sent{}, true)
	})
	if w.Server.Effects > 0 {
		drive("the lookup finds it", nil, func(d *operation.Drive) {
			d.Asked(classify.FindingSame, operation.Sent{Answer: operation.Answer{ID: 1, Status: 200}}, true)
		})
		return
	}
	drive("the lookup finds nothing", nil, func(d *operation.Drive) {
		d.Asked(classify.FindingNone, operation.Sent{Answer: operation.Answer{ID: 1, Status: 404}}, true)
	})
}

// write does the step Write.
func (m *moves) write(w *World, p int, drive stepper) {
	proc, now := w.Procs[p], w.now()
	if !proc.First && proc.Caller && proc.Drive.MayAnswerFirst(now) {
		to := *w
		to.Procs[p].First, to.Procs[p].Caller = true, false
		tell(&to, operation.Answered(proc.Drive.Answer().Status, false, proc.Drive.Proof().Refused))
		m.add(w, to, p, "callers get the answer before it is written", "")
	}
	after := w.Rec
	change := func(d *operation.Drive) { d.Moved(after.Op) }
	if proc.Stale || !after.Exists {
		drive("the record has moved, so that it is not written", nil, func(d *operation.Drive) { d.Change(operation.Meanwhile{}, now); d.Written(false, now) })
		return
	}
	d := proc.Drive
	change(&d)
	c := d.Change(operation.Meanwhile{}, now)
	rec := Rec{}
	if d.Writing() != operation.Forget {
		rec = changed(after, c, d.Answer(), d.Stored())
	}
	text := "it is written as " + c.State.String()
	switch {
	case !rec.Exists:
		text = "the record is forgotten"
	case c.Hold != "":
		text += " (" + string(c.Hold) + ")"
	}
	written := func(ok bool) func(*operation.Drive) {
		return func(d *operation.Drive) { change(d); d.Change(operation.Meanwhile{}, now); d.Written(ok, now) }
	}
	put := func(to *World) { m.slice.write(to, p, rec, !c.Final) }
	drive(text, put, written(true))
	if w.Left.Fails > 0 {
		drive("the journal fails, and has not written it", func(to *World) { to.Left.Fails-- }, written(false))
		drive("the journal fails, and "+text, func(to *World) { to.Left.Fails--; put(to) }, written(false))
	}
}

// over tells callers the end of a drive, if this was its last step.
func (m *moves) over(w *World, to World, p int, text string) {
	proc := &to.Procs[p]
	if proc.Drive.Step() != operation.Over {
		m.add(w, to, p, text, "")
		return
	}
	r, more := proc.Drive.Report(), ""
	switch {
	case !proc.Caller:
		more = "; the drive is over"
	case r.Answered:
		tell(&to, operation.Answered(proc.Drive.Answer().Status, false, proc.Drive.Proof().Refused))
		more = "; the caller gets the answer"
	case operation.Judge(r.Standing, operation.Same) == operation.NoEffect:
		tell(&to, operation.Absent)
		more = "; the caller is told: no effect"
	default:
		more = "; the caller is told: " + verdicts[operation.Judge(r.Standing, operation.Same)]
	}
	*proc = Proc{}
	m.add(w, to, p, text, more)
}

// verdicts are the verdicts in words.
var verdicts = [...]string{operation.Unknown: "unknown", operation.NoEffect: "no effect", operation.Final: "final"}

// tell notes what a caller was told.
func tell(w *World, s operation.Standing) {
	switch s.Effect() {
	case persist.EffectHappened:
		w.Told.Paid = true
	case persist.EffectRefused:
		w.Told.Refused = true
	case persist.EffectAbsent:
		w.Told.Free = true
	}
}
