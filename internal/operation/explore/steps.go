package explore

import (
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
)

// ways collects the possible results of one step of a drive.
type ways struct {
	*moves
	w    *World
	p, t int
}

// out adds one possible result of the client's present step: the event did, with answer in its text, which may be empty. change changes the state first, and may be
// nil; took hands the result to the drive, which decides on.
func (x *ways) out(did Did, answer string, change func(*World), took func(*operation.Drive)) {
	to := *x.w
	if change != nil {
		change(&to)
	}
	d := *to.Procs[x.p].Drive
	took(&d)
	to.Procs[x.p].Drive = x.slice.drive(d)
	x.over(to, Event{By: int8(x.p), On: int8(x.t), Did: did, Answer: answer})
}

// step adds the states after the next step of client p's drive (the decisions about its operation): one state for each possible result of the step. Stale: its
// record has changed since it was read; Lost: its lease is over. Then Check may find that the lease is gone.
func (m *moves) step(w *World, p int) {
	proc := &w.Procs[p]
	x := &ways{m, w, p, int(proc.On)}
	// Beside the step itself: the process may freeze, and the limiter may take long, before the first send or another one.
	m.lease(w, p)
	x.leaveFirst()
	if proc.Drive.WaitsToSend() {
		x.limited()
	}
	now := m.slice.now(w)
	switch d := proc.Drive; d.Step() {
	case operation.Check, operation.CheckToken:
		x.check()
	case operation.FetchToken:
		x.fetchToken()
	case operation.KeepToken:
		x.keepToken()
	case operation.Send:
		x.send()
	case operation.LookUp:
		x.lookUp()
	case operation.AskFirst, operation.AskDuplicate:
		x.ask()
	case operation.AskSource:
		x.out(SourceHasOthers, "", nil, func(d *operation.Drive) { d.SourceAsked(true) })
		x.out(SourceHasTheSame, "", nil, func(d *operation.Drive) { d.SourceAsked(false) })
	case operation.Draw:
		x.out(DrawsWait, "", nil, func(d *operation.Drive) { d.Drawn(operation.Drawn{}, now) })
		x.out(IsGivenUp, "", nil, func(d *operation.Drive) { d.Drawn(operation.Drawn{GivenUp: true}, now) })
	case operation.Wait:
		x.limited()
		x.out(Waits, "", nil, func(d *operation.Drive) { d.Waited(true) })
		x.out(WaitIsCut, "", nil, func(d *operation.Drive) { d.Waited(false) })
	case operation.LookForPlace:
		x.place()
	case operation.LookForOther:
		x.lookForOther()
	case operation.Write:
		x.write()
	case operation.Flush:
		x.out(Flushes, "", func(to *World) { m.slice.flush(to) }, func(d *operation.Drive) { d.Flushed(true) })
		if w.Left.Fails > 0 {
			x.out(FlushFails, "", func(to *World) { to.Left.Fails--; to.Procs[p].Failed = true }, func(d *operation.Drive) { d.Flushed(false) })
		}
	default:
		panic(fmt.Sprintf("no step %d", d.Step()))
	}
}

// check adds the states after the look at the own record and its neighbours. Stale: the record has changed since it was read; Lost: the lease is over. Then it may
// find that the lease is gone. An operation that a person has begun in the place of the other key's (Replaces) is stopped if that one may take effect.
func (x *ways) check() {
	m, p := x.moves, x.p
	proc, now := &x.w.Procs[p], m.slice.now(x.w)
	d := proc.Drive
	if d.Step() == operation.Check && !proc.Stale && !x.oldStands() {
		return
	}
	old := m.slice.read(p, x.w.Ops[1-x.t].Rec.Op)
	happened := d.Step() == operation.Check && ptr(d.Op()).Replaces && !x.asksAgain() && intent.Successor{Begun: true}.IsStoppedBy(&old)
	if happened {
		x.out(FindsOldHappened, "", nil, (*operation.Drive).OldFound)
	} else if !proc.Stale || d.Step() == operation.CheckToken {
		x.out(Checks, "", nil, func(d *operation.Drive) { d.Checked(true, now) })
	}
	if m.slice.Taken && d.Step() == operation.Check && !proc.Stale && !x.asksAgain() {
		x.out(KeyIsTaken, "", nil, (*operation.Drive).KeyTaken)
	}
	if proc.Stale || proc.Lost {
		x.out(LeaseIsGone, "", func(to *World) { to.Procs[p].Unsure = true }, func(d *operation.Drive) { d.Checked(false, now) })
	}
}

// lease lets the process of client p freeze until its lease is over (Lost). It also lets the process have the lease again if nobody took the operation (the
// record is not Stale). Without a shared journal there are no leases. It freezes only where the loss can matter: before a check or a write, and in a wait.
func (m *moves) lease(w *World, p int) {
	proc := &w.Procs[p]
	if !m.slice.Shared {
		return
	}
	to := *w
	switch step := proc.Drive.Step(); {
	case !proc.Lost && (step == operation.Check || step == operation.Wait || step == operation.Write):
		to.Procs[p].Lost = true
		m.add(w, to, Event{By: int8(p), On: proc.On, Did: Freezes})
	case proc.Lost && !proc.Stale && step == operation.Check && !w.leased(int(proc.On), p):
		to.Procs[p].Lost = false
		m.add(w, to, Event{By: int8(p), On: proc.On, Did: HasLeaseAgain})
	}
}

// fetchToken adds the results of the step FetchToken, a request for the key that the server hands out: a token, none
// for now, or none at all. It counts as no send. Tokens are numbered from 1, in their order.
func (x *ways) fetchToken() {
	fetched := func(ok, again bool, sent operation.Sent) func(*operation.Drive) {
		return func(d *operation.Drive) { d.TokenFetched(ok, again, sent) }
	}
	x.out(GetsNoToken, "for now", nil, fetched(false, true, operation.Sent{}))
	x.out(GetsNoToken, "", nil, fetched(false, false, operation.Sent{Unsent: true}))
	if x.w.Left.Tokens > 0 {
		x.out(GetsToken, "", func(to *World) {
			to.Left.Tokens--
			to.Procs[x.p].Token = x.slice.Bounds.Tokens - to.Left.Tokens
		}, fetched(true, false, operation.Sent{}))
	}
}

// keepToken adds the results of the step KeepToken, the write of the key that the server has handed out: too late, written, or failed. A failed write may be in the
// journal all the same; the client's copy is Stale then. A write of a stale copy is refused, and needs no failure of the journal (Fails). The first question is
// asked of a copy of the drive.
func (x *ways) keepToken() {
	s, rec := x.slice, *x.w.Ops[x.t].Rec
	now := s.now(x.w)
	if d := *x.w.Procs[x.p].Drive; !d.MayKeepToken(true, now) {
		x.out(TokenIsTooLate, "", nil, func(d *operation.Drive) { d.MayKeepToken(true, now) })
		return
	}
	kept := rec
	kept.Token, kept.Op.Token, kept.Op.MaybeSent, kept.Op.FirstSent = x.w.Procs[x.p].Token, true, true, now
	if !x.w.Procs[x.p].Stale && rec.Exists {
		x.out(TokenIsKept, "", func(to *World) { s.write(to, x.t, x.p, kept, true) }, func(d *operation.Drive) {
			d.Moved(s.read(x.p, kept.Op))
			d.TokenKept(true)
		})
		if x.w.Left.Fails == 0 {
			return
		}
	}
	failed := func(d *operation.Drive) { d.TokenKept(false) }
	fails := func(to *World) { to.Left.Fails -= min(to.Left.Fails, 1) }
	x.out(TokenIsNotKept, "", fails, failed)
	if !x.w.Procs[x.p].Stale && rec.Exists {
		x.out(TokenIsKeptUnsaid, "", func(to *World) { fails(to); s.write(to, x.t, x.p, kept, true); to.Procs[x.p].Stale = true }, failed)
	}
}

// token returns the number of the server's key with which the client sends: the one it has just fetched, else the recorded one (the map stands for a condition);
// 0 if the server hands out none.
func (x *ways) token() int8 {
	if x.slice.Token {
		return x.w.Procs[x.p].Token + map[bool]int8{true: x.w.Ops[x.t].Rec.Token}[x.w.Procs[x.p].Token == 0]
	}
	return 0
}

// send adds the results of the step Send: the server's reactions, a lost request or answer, and a client that must not send. A lost request may arrive later
// (Flying). SentWith keeps the token of the first send, plus one. Error has one number for each 500: equal errors are counted. Lost answers that leave the same
// state are added once (met).
func (x *ways) send() {
	s, w, proc := x.slice, x.w, &x.w.Procs[x.p]
	unsent := classify.Verdict{Kind: classify.KindNotSent}
	if stop := proc.Drive.MayLeave(s.now(w), true); stop != operation.GoesOn {
		x.out(MayNotLeave, "", nil, func(d *operation.Drive) {
			d.Sent(unsent, operation.Sent{Unsent: true, TooOld: stop == operation.TooOld})
		})
		return
	}
	again := unsent
	again.Again = true
	x.out(HasNoConnection, "", nil, func(d *operation.Drive) {
		d.Sent(again, operation.Sent{Unsent: true, Down: s.now(w).Add(time.Second)})
	})
	if w.Left.Sends == 0 {
		return
	}
	token := x.token()
	leaves := func(to *World) {
		to.Left.Sends--
		if k := &to.Ops[x.t]; k.SentWith == 0 {
			k.SentWith = token + 1
		}
	}
	lost := func(d *operation.Drive) { d.Sent(classify.Verdict{Again: true}, operation.Sent{Sends: 1}) }
	x.out(SendIsLost, "", func(to *World) { leaves(to); to.Ops[x.t].Flying[token]++ }, lost)
	met := map[World]bool{}
	for _, r := range s.react(w, x.t, token, w.Ops[x.t].flying() || w.driven2(x.t, x.p)) {
		serve := func(to *World) { leaves(to); s.do(to, x.t, token, &r) }
		x.out(ServerAnswers, r.answer.Text, serve, func(d *operation.Drive) {
			d.Sent(s.verdict(x.p, d, &r.answer), operation.Sent{Sends: 1, Hint: r.answer.Hint, Source: s.Source, Error: map[int]uint64{500: 1}[r.answer.Status], Answer: operation.Answer{ID: 1, Status: r.answer.Status}})
		})
		if to := *w; r.acts || r.keeps != 0 { // a lost answer of a server that did nothing is a lost send, gone for good
			if s.do(&to, x.t, token, &r); !met[to] {
				met[to] = true
				x.out(AnswerIsLost, r.answer.Text, serve, lost)
			}
		}
	}
}

// driven2 reports whether the client other than p is at work on key t's operation.
func (w *World) driven2(t, p int) bool {
	other := &w.Procs[1-p]
	return other.Active && int(other.On) == t
}

// ask does the steps AskFirst and AskDuplicate: the API knows the resource by its reference, or does not tell. Without an effect it finds nothing; before a send,
// it may also find another request's resource. A status of 0 is a lookup without an answer.
func (x *ways) ask() {
	asked := func(f classify.Finding, status int) func(*operation.Drive) {
		sent := operation.Sent{Sends: 1}
		if status != 0 {
			sent.Answer = operation.Answer{ID: 1, Status: status}
		}
		return func(d *operation.Drive) { d.Asked(f, sent, true) }
	}
	x.out(LookupFails, "", nil, asked(classify.FindingUnclear, 0))
	if x.w.Intents[x.w.Ops[x.t].Intent].Effects > 0 {
		x.out(LookupFinds, "", nil, asked(classify.FindingSame, 200))
		return
	}
	x.out(LookupFindsNothing, "", nil, asked(classify.FindingNone, 404))
	if x.w.Procs[x.p].Drive.Step() == operation.AskFirst {
		x.out(LookupFindsAnother, "", nil, asked(classify.FindingOther, 200))
	}
}

// lookUp adds the results of the step LookUp, the read of the resource that an "already done" answer names: it is found, or not. The verdict is that on the first
// answer (Done): in the model the resource proves nothing more. The resource's answer has the ID 2, since the first one has 1.
func (x *ways) lookUp() {
	x.out(LookupFinds, "", nil, func(d *operation.Drive) {
		d.LookedUp(d.Done(), operation.Sent{Sends: 1, Answer: operation.Answer{ID: 2, Status: 200}})
	})
	x.out(LookupFails, "", nil, func(d *operation.Drive) { d.LookedUp(d.Done(), operation.Sent{Sends: 1}) })
}

// place adds the results of the step LookForPlace: records of other scopes (such as other accounts in a header) stand beside this one's (keeps of PlaceFound), or
// do not, or the look fails (not ok).
func (x *ways) place() {
	x.out(KeyHasOnePlace, "", nil, func(d *operation.Drive) { d.PlaceFound(false, true) })
	if x.slice.Scoped {
		x.out(KeyHasPlaces, "", nil, func(d *operation.Drive) { d.PlaceFound(true, true) })
	}
	if x.w.Left.Fails > 0 {
		x.out(PlacesUnknown, "", func(to *World) { to.Left.Fails-- }, func(d *operation.Drive) { d.PlaceFound(false, false) })
	}
}

// lookForOther adds the results of the step LookForOther, the last look at the key of a forgotten record: a new record
// or none, or a failed look.
func (x *ways) lookForOther() {
	k := &x.w.Ops[x.t]
	x.out(LooksAgain, "", nil, func(d *operation.Drive) {
		if k.Rec.Exists {
			d.Moved(x.slice.read(x.p, k.Rec.Op))
		}
		d.OtherFound(k.Rec.Exists || x.slice.noted(x.w, x.t, x.slice.process(x.p)))
	})
	if x.w.Left.Fails > 0 {
		x.out(LookFails, "", func(to *World) { to.Left.Fails-- }, func(d *operation.Drive) { d.OtherFound(true) })
	}
}

// write adds the results of the step Write, the last write about the operation: written, failed, or stale since another client has changed the record. Before
// it, callers may get the answer (First). It also reports a record that would be due too late.
func (x *ways) write() {
	s, w, proc := x.slice, x.w, &x.w.Procs[x.p]
	now := s.now(w)
	if !proc.First && proc.Caller && proc.Drive.MayAnswerFirst(now) {
		to := *w
		to.Procs[x.p].First, to.Procs[x.p].Caller = true, false
		first := *proc.Drive
		first.AnswersFirst()
		to.Procs[x.p].Drive = s.drive(first)
		status := proc.Drive.Answer().Status
		tell(&to, x.t, operation.Answered(status, proc.Drive.Proof().AlreadyDone, proc.Drive.Proof().Refused))
		x.add(w, to, Event{By: int8(x.p), On: int8(x.t), Did: AnswersFirst, Told: ToldAnswer, Status: int16(status)})
	}
	after := *w.Ops[x.t].Rec
	m := operation.Meanwhile{GivenUp: proc.Drive.Stop() == operation.GivenUp, Shown: proc.Plain, LatestFirst: s.latestFirst(x.p, &after.Op)}
	// The journal refuses the write: the record is not the one that was read.
	if proc.Stale || !after.Exists {
		x.out(FindsItMoved, "", func(to *World) { to.Procs[x.p].Failed = true }, func(d *operation.Drive) { d.Change(m, now); d.Written(false, now) })
		return
	}
	d := *proc.Drive
	d.Moved(s.read(x.p, after.Op))
	c := d.Change(m, now)
	rec, text := Rec{}, "forgotten"
	if d.Writing() != operation.Forget {
		rec, text = s.changed(after, c, &d), c.State.String()
	}
	if c.Hold != "" {
		text += " (" + string(c.Hold) + ")"
	}
	written := func(ok bool) func(*operation.Drive) {
		return func(d *operation.Drive) {
			d.Moved(s.read(x.p, after.Op))
			d.Change(m, now)
			d.Written(ok, now)
		}
	}
	if c.Hold == "" && !c.Final && rec.Exists && isDueTooLate(&d, &c) {
		x.all = append(x.all, move{Event{By: int8(x.p), On: int8(x.t), Did: Writes, Answer: text}, *w, "28: a record is due when it may not be sent any more"})
		return
	}
	put := func(to *World) { s.write(to, x.t, x.p, rec, !c.Final) }
	coming := !rec.Exists && w.Ops[x.t].Coming // a journal does not forget a record if a statement may yet begin it
	if !coming {
		x.out(Writes, text, put, written(true))
	}
	if w.Left.Fails > 0 || coming {
		fails := func(to *World) { to.Left.Fails -= min(to.Left.Fails, 1); to.Procs[x.p].Failed = true }
		x.out(WriteFails, text, fails, written(false))
		if !coming {
			x.out(WriteFailsWritten, text, func(to *World) { fails(to); put(to) }, written(false))
		}
	}
}

// isDueTooLate reports whether an unfinished record is due only after the time for its sends is over. No pass would use that time: an error of the decisions. A
// millisecond after the end is allowed: the pass at that time holds the record.
func isDueTooLate(d *operation.Drive, c *operation.Change) bool {
	op := d.Op()
	until := op.SendBefore
	if op.MaybeSent && !c.Unmark {
		until = op.FirstSent.Add(op.Window - operation.UsualMargin(op.Window))
	}
	return !until.IsZero() && c.NextAttempt.After(until.Add(time.Millisecond))
}

// over adds the state to, reached by the event e. If the drive is over by that, its caller is told the answer or error first. Decides: a caller of plain HTTP
// was told of an unknown outcome, and may act on a shown answer.
func (x *ways) over(to World, e Event) {
	proc := &to.Procs[x.p]
	if proc.Drive.Step() != operation.Over {
		x.add(x.w, to, e)
		return
	}
	d := proc.Drive
	r, status := d.Report(), d.Answer().Status
	verdict := operation.Judge(r.Standing, operation.Same)
	switch {
	case !proc.Caller:
		e.Told = ToldOver
	case r.Left:
		to.Procs[x.p] = proc.left(e.Did == WriteFailsWritten)
	case r.Answered:
		tell(&to, x.t, operation.Answered(status, d.Proof().AlreadyDone, d.Proof().Refused))
		e.Told, e.Status = ToldAnswer, int16(status)
		if r.Unreported {
			rec := *to.Ops[x.t].Rec
			rec.Op.Unreported = false
			to.Ops[x.t].Rec = x.slice.rec(rec)
		}
	default:
		k := &to.Ops[x.t]
		other := k.Coming && x.slice.process(int(k.By)) != x.slice.process(x.p) // somebody else wants it by now
		if e.Told = toldOf(verdict); verdict == operation.NoEffect && !other {
			tell(&to, x.t, operation.Absent)
		}
		if proc.Plain && r.MayShow && d.Answer().ID != 0 {
			e.Status = int16(status)
		}
		k.Decides = proc.Plain && verdict == operation.Unknown && e.Did == Writes
	}
	x.add(x.w, to, e)
}
