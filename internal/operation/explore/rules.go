package explore

import (
	"slices"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the invariants, with the numbers of docs/invariants.md.

// happened is one event with the states before and after it, in the form for rules.
type happened struct {
	slice    *Slice
	from, to *World
	e        *Event
	k, was   *Track  // of its key: after it, and before
	i        *Intent // the intent of the key
}

// rule is an invariant, or a part of one. broken reports whether an event breaks it.
type rule struct {
	says    string
	trusted bool // it holds only if the server keeps to its profile
	broken  func(h *happened) bool
}

// breaks returns the invariant that the event e breaks on its way from one state to the next, in words; empty if none. The lists are the invariants of events
// (rules), of records, and of the ends of drives. With a server that forgets keys, those marked trusted do not count. A key where nothing has changed is not
// checked.
func (s *Slice) breaks(from, to *World, e *Event) string {
	for t := range to.Ops {
		if t != int(e.On) && to.Ops[t].Rec == from.Ops[t].Rec && to.Ops[t].Disk == from.Ops[t].Disk && to.Intents[t] == from.Intents[t] {
			continue // it happens to the other one
		}
		h := &happened{s, from, to, e, &to.Ops[t], &from.Ops[t], &to.Intents[to.Ops[t].Intent]}
		for _, list := range [...][]rule{rules, records} {
			for i := range list {
				if r := &list[i]; (s.Server != Forgets || !r.trusted) && r.broken(h) {
					return r.says
				}
			}
		}
		if t == int(e.On) {
			for i := range ends {
				if ends[i].broken(h) {
					return ends[i].says
				}
			}
		}
	}
	return ""
}

// sent reports whether the checked event is a send under the checked key.
func (h *happened) sent() bool {
	return h.to.Left.Sends < h.from.Left.Sends && h.k == &h.to.Ops[h.e.On]
}

// held reports whether the operation was held before the event, for a person or Config.Reconcile: then nothing may be
// sent. A hold for its caller does not count.
func (h *happened) held() bool {
	o := &h.was.Rec.Op
	return h.was.Rec.Exists && o.State == persist.StateHeld && o.Hold != persist.HoldCaller
}

// tooOld reports whether the time for the first send of an operation is over. It does not ask the decisions, the
// subject of the search.
func (h *happened) tooOld(op *operation.Op) bool {
	return !op.SendBefore.IsZero() && h.slice.now(h.from).After(op.SendBefore)
}

// acted reports whether the checked event is a person's act, or an Enqueue: they may change an operation as no call
// does.
func (h *happened) acted() bool { return h.to.Left.Acts < h.from.Left.Acts }

// newlyFree reports whether, by the checked event, callers are told for the first time that there was no effect: they
// are free to use another key.
func (h *happened) newlyFree() bool { return h.k.Free && !h.was.Free }

// frozen reports whether some client of the model has lost its lease, as a frozen process does: it may still send.
func (h *happened) frozen() bool { return h.from.Procs[0].Lost || h.from.Procs[1].Lost }

// drive returns the drive (the decisions about one operation) of the client whose event is checked, as before the
// event.
func (h *happened) drive() *operation.Drive { return h.from.Procs[h.e.By].Drive }

// rules are the invariants of events.
var rules = []rule{
	{"1: it took effect twice", true, func(h *happened) bool { return h.i.Effects > 1 }},
	{"2: callers were told that nothing happened, and then it took effect", false, func(h *happened) bool {
		return h.k.Effects > h.was.Effects && h.was.Free && h.k.Free
	}},
	{"2, 13: callers are told that nothing happened, and it took effect", false, func(h *happened) bool {
		return h.newlyFree() && h.k.Effects > 0
	}},
	{"2: callers are told that nothing happened, while a send may yet arrive", false, func(h *happened) bool {
		return h.newlyFree() && h.k.flying()
	}},
	{"2, 19: callers are told that nothing happened, and a record is pending, or may come", false, func(h *happened) bool {
		return h.newlyFree() && (h.k.Rec.Exists && h.k.Rec.Op.Standing != operation.Absent || h.k.Coming && h.k.Noted[h.slice.process(int(h.e.By))])
	}},
	{"19: callers are told that nothing happened, and the same stands under another key", false, func(h *happened) bool {
		other := &h.to.Ops[1-h.on()]
		return h.newlyFree() && h.slice.Keyless && other.Rec.Exists && !other.Late && other.Intent == h.k.Intent && !other.Rec.Op.State.Final()
	}},
	{"13: callers are told that nothing happened before that is durable", false, func(h *happened) bool {
		return h.newlyFree() && h.k.Disk.Exists && h.k.Disk.Op.Standing != operation.Absent
	}},
	{"4: callers have a success, and nothing took effect", false, func(h *happened) bool { return h.k.Paid && h.i.Effects == 0 }},
	{"2: callers have a final refusal, and it took effect", true, func(h *happened) bool { return h.k.Refused && h.k.Effects > 0 }},
	{"30: callers were told two things", true, func(h *happened) bool {
		return h.k.Paid && (h.k.Refused || h.k.Free) && h.k.Meta != h.was.Meta
	}},
	{"6, 7, 60: it is sent under another token than before", false, func(h *happened) bool {
		x := ways{&moves{slice: h.slice}, h.from, int(max(h.e.By, 0)), int(h.e.On)}
		return h.sent() && h.was.SentWith != 0 && h.was.SentWith != x.token()+1
	}},
	{"7: something is sent, and no durable record says that it may have been", false, func(h *happened) bool {
		return h.sent() && (!h.was.Disk.Exists || !h.was.Disk.Op.MaybeSent && !h.was.Disk.Op.State.Final())
	}},
	{"7, 60: something is sent with a token that no durable record has", false, func(h *happened) bool {
		x := ways{&moves{slice: h.slice}, h.from, int(max(h.e.By, 0)), int(h.e.On)}
		return h.sent() && h.slice.Token && h.was.Disk.Token != x.token() && !h.frozen()
	}},
	{"8: it is sent after the window", false, func(h *happened) bool {
		return h.sent() && h.was.Rec.Exists && h.slice.now(h.from).Sub(h.was.Rec.Op.FirstSent) >= window
	}},
	{"8: it is sent for the first time when it is too late", false, func(h *happened) bool {
		op := h.was.Rec.Op
		return h.sent() && h.was.Rec.Exists && !h.drive().InDoubt() && h.tooOld(&op)
	}},
	{"8: it is marked as sent when it is too late for its first send", false, func(h *happened) bool {
		op := h.was.Rec.Op
		return h.was.Rec.Exists && !op.MaybeSent && h.k.Rec.Op.MaybeSent && h.tooOld(&op)
	}},
	{"48: it is sent after three equal errors", false, func(h *happened) bool { return h.sent() && h.drive().Errors() >= operation.ErrorsMax }},
	{"59: it is sent after the attempts of its drive are spent", false, func(h *happened) bool {
		return h.sent() && h.drive().Spent().Attempts > h.slice.Configs[h.e.By].Limits.MaxAttempts
	}},
	{"59: it is sent again although the server has said too often that it is in flight", false, func(h *happened) bool {
		return h.sent() && h.drive().Spent().InFlight >= h.slice.Configs[h.e.By].Limits.MaxInFlight
	}},
	{"60: what was never sent, and has no token, is marked as sent", false, func(h *happened) bool {
		return h.slice.Token && h.k.Rec.Op.MaybeSent && h.k.Rec.Exists && h.k.Rec.Token == 0
	}},
	{"61: what was never sent is held for an undo", false, func(h *happened) bool {
		return h.e.Did == HoldsToUndo && !h.was.Rec.Op.MaybeSent && h.was.Rec.Op.Sends == 0
	}},
	{"61: what is held for an undo is gone on with, or ended, by nobody who knows of it", false, func(h *happened) bool {
		return h.was.Rec.Op.Hold == persist.HoldUndo && h.k.Rec.Op.Hold != persist.HoldUndo && !h.acted()
	}},
	{"62: a Rekey's lookup settles what is not held for it", false, func(h *happened) bool {
		return h.e.Did == RekeyFindsNothing && h.was.Rec.Op.Hold != persist.HoldRekey && h.was.Rec.Op.Hold != persist.HoldRekeyHeld
	}},
	{"62: a Rekey's lookup does not tell, and what was held before it is sent again", false, func(h *happened) bool {
		return h.e.Did == RekeyFindsIt && h.was.Rec.Op.Hold == persist.HoldRekeyHeld && h.k.Rec.Op.State != persist.StateHeld
	}},
	{"62: a Rekey holds what was held, and forgets that", false, func(h *happened) bool {
		was := &h.was.Rec.Op
		return h.e.Did == HoldsToRekey && was.State == persist.StateHeld && was.Hold != persist.HoldRekey && h.k.Rec.Op.Hold != persist.HoldRekeyHeld
	}},
	{"12: it is sent by a client that knows that its lease is gone", false, func(h *happened) bool {
		return h.sent() && h.from.Procs[h.e.By].Unsure
	}},
	{"29: a pass sends it while a caller of plain HTTP decides what to do", false, func(h *happened) bool {
		return h.sent() && h.was.Decides && h.from.Procs[h.e.By].Pass && !h.was.Rec.Op.Enqueued
	}},
	{"8: it is sent while it is held", false, func(h *happened) bool { return h.sent() && h.held() && !h.frozen() }},
	{"8: a client goes on with it that may not act on it", false, func(h *happened) bool {
		return h.sent() && h.slice.Configs[h.e.By].Lacks && h.was.By != h.e.By
	}},
	{"33: a caller goes on with it whose request may be another", false, func(h *happened) bool {
		return (h.e.Did == GoesOn || h.e.Did == GivesRecorded) && h.slice.Configs[h.e.By].CannotTell && h.was.By != h.e.By
	}},
	{"8: what is held is gone on with", false, func(h *happened) bool {
		return h.held() && h.k.Rec.Op.State == persist.StatePending && !h.acted()
	}},
	{"18: it is held as too late, and was promised a later send", false, func(h *happened) bool {
		op := h.k.Rec.Op
		return h.k.Rec.Exists && op.Hold == persist.HoldExpired && op.Enqueued && !op.MaybeSent && h.was.Rec.Op.Hold != op.Hold && !h.tooOld(&op)
	}},
	{"3, 18: the record of what was enqueued is gone", false, func(h *happened) bool {
		return h.was.Disk.Exists && h.was.Disk.Op.Enqueued && !h.k.Disk.Exists
	}},
	{"3, 18: what was enqueued is held for a caller of plain HTTP", false, func(h *happened) bool {
		return h.e.Did == Writes && h.was.Rec.Op.Enqueued && h.k.Rec.Op.Hold == persist.HoldCaller
	}},
	{"8: an Enqueue goes on with what is held", false, func(h *happened) bool {
		return h.e.Did == EnqueuesBeside && h.held() && (h.was.Rec.Op.Hold != persist.HoldExpired || h.was.Rec.Op.MaybeSent)
	}},
	{"56: it is sent, or gone on with, although an event is known to prove its effect", false, func(h *happened) bool {
		return (h.e.Did == GoesOn || h.e.Did == PassGoesOn) && h.was.Rec.Op.Witnessed && h.was.Rec.Op.Hold != persist.HoldUndo
	}},
	{"56: an event settles, although nothing took effect", false, func(h *happened) bool {
		return h.e.Did == EvidenceSettles && h.k.Effects == 0
	}},
	{"56: evidence is lost", false, func(h *happened) bool {
		return h.was.Disk.Exists && h.was.Disk.Op.Witnessed && !h.k.Disk.Op.Witnessed
	}},
	{"56: it has ended otherwise than as happened, although an event proves its effect", false, func(h *happened) bool {
		o, was := &h.k.Rec.Op, &h.was.Rec.Op
		told := h.e.By >= 0 && h.from.Procs[h.e.By].First
		return o.Witnessed && o.State.Final() && !was.State.Final() && was.Hold != persist.HoldUndo && !told && o.Standing.Effect() != persist.EffectHappened
	}},
	{"56: a drive that has found evidence leaves the operation open", false, func(h *happened) bool {
		return h.e.Did == Writes && h.was.Rec.Op.Witnessed && !h.k.Rec.Op.State.Final()
	}},
	{"54, 56: it goes on to send, although an event proves the operation in whose place it stands", false, func(h *happened) bool {
		return h.e.Did == Checks && h.was.Rec.Op.Replaces && h.from.Ops[1-h.on()].Rec.Op.Witnessed && h.to.Procs[h.e.By].Drive.Step() == operation.Send
	}},
	{"54: an operation is begun in the place of one that a client without its lease may still send", false, func(h *happened) bool {
		sending := func(q Proc) bool {
			return q.Active && q.On == 0 && q.Lost && q.Stale && q.Drive.Step() == operation.Send
		}
		return h.e.Did == RedriveNames && slices.ContainsFunc(h.from.Procs[:], sending)
	}},
	{"1, 54: the next generation is sent, and no durable record stands for the first one", false, func(h *happened) bool {
		return h.sent() && h.slice.Skips && h.e.On == 1 && !h.from.Ops[0].Disk.Exists
	}},
	{"1, 54: a caller is told that a skipped generation had no effect, and the next one took effect, or may", true, func(h *happened) bool {
		return h.e.Told == ToldNoEffect && h.e.On == 0 && h.was.Rec.Op.Skipped && (h.i.Effects > 0 || h.to.Ops[1].flying())
	}},
	{"54: a placeholder is sent", false, func(h *happened) bool { return h.sent() && h.was.Rec.Op.Skipped }},
	{"54: a settlement is taken back, and the operation is not held for a person", false, func(h *happened) bool {
		return h.e.Did == TakesBack && (h.k.Rec.Op.State != persist.StateHeld || h.k.Rec.Op.Hold != persist.HoldReopened)
	}},
	{"8: what has ended changes", false, func(h *happened) bool {
		back := h.e.Did == TakesBack && h.was.Disk.Op.State == persist.StateSettled && h.k.Disk.Op.State == persist.StateHeld
		return h.was.Disk.Exists && h.was.Disk.Op.State.Final() && h.k.Disk.Exists && h.k.Disk.Op.State != h.was.Disk.Op.State && !back
	}},
}

// records are the invariants of a record.
var records = []rule{
	{"2: the record is forgotten, and an effect is there, or possible", true, func(h *happened) bool {
		return !h.k.Rec.Exists && (h.k.Effects > 0 || h.k.flying()) && !h.to.driven(int(h.on()))
	}},
	{"2: the record says that it was never sent, and an effect is there, or possible", true, func(h *happened) bool {
		o := &h.k.Rec.Op
		return h.k.Rec.Exists && !o.MaybeSent && (h.k.Effects > 0 || h.k.flying()) && !o.State.Final()
	}},
	{"2: the record is a refusal, and it took effect", true, func(h *happened) bool {
		return h.k.Rec.Op.State == persist.StateConfirmed && h.k.Rec.Op.Standing == operation.Refused && h.k.Effects > 0
	}},
	{"4: the record is a success, and nothing took effect", true, func(h *happened) bool {
		return h.k.Rec.Op.State == persist.StateConfirmed && h.k.Rec.Op.Standing == operation.Succeeded && h.i.Effects == 0
	}},
	{"54: an operation was begun in the place of one that is open, or took effect", false, func(h *happened) bool {
		other, o := h.to.Ops[1-h.on()].Rec, &h.k.Rec.Op
		return h.k.Rec.Exists && other.Exists && other.Op.Replaces && (!o.State.Final() || o.Standing.Effect() == persist.EffectHappened)
	}},
	{"2: the record is settled as absent, and it took effect", true, func(h *happened) bool {
		return h.k.Rec.Op.Standing == operation.Absent && h.k.Effects > 0
	}},
}

// on returns the number of the key whose record the rules check, 0 or 1.
func (h *happened) on() int8 {
	if h.k == &h.to.Ops[1] {
		return 1
	}
	return 0
}

// ends are the invariants of the ends of drives.
var ends = []rule{
	{"5: a whole success was read, and the call does not give it", false, func(h *happened) bool {
		d, over := h.ended()
		proof := d.Proof()
		return over && proof.Kind == operation.ProvesEnd && d.Answer().Status < 300 && !proof.Refused && d.Writing() == operation.EndConfirmed && !d.Report().Answered
	}},
	{"9: an error says that the operation is final, and its record is not", false, func(h *happened) bool {
		return h.e.Told == ToldFinal && !h.k.Rec.Op.State.Final()
	}},
	{"13: a refusal is told as final before that is durable", false, func(h *happened) bool {
		return h.e.Told == ToldFinal && h.k.Rec.Op.Standing == operation.Refused && !h.k.Disk.Op.State.Final()
	}},
	{"14: an answer that the server does not give again is told before it is durable", false, func(h *happened) bool {
		d, over := h.ended()
		return (over && d.Report().Answered && !d.Stored() || h.e.Did == AnswersFirst && !h.drive().Stored()) &&
			!h.to.Procs[h.e.By].Failed && !h.k.Disk.Op.State.Final()
	}},
	{"14: a refusal that the server does not give again is told, and its record is not durable", false, func(h *happened) bool {
		d, over := h.ended()
		return over && d.Report().Answered && !d.Stored() && d.Answer().Status >= 400 && !h.k.Disk.Op.State.Final()
	}},
	{"17: a pass has ended an operation under a generated key, and it does not count as unreported", false, func(h *happened) bool {
		return (h.e.Did == Writes || h.e.Did == WriteFailsWritten) && h.from.Procs[h.e.By].Pass && h.k.Rec.Op.Generated &&
			h.k.Rec.Op.State == persist.StateConfirmed && !h.k.Rec.Op.Unreported
	}},
	{"53: an end or a new hold is written, and it is not owed", false, func(h *happened) bool {
		o := &h.k.Rec.Op
		return (h.e.Did == Writes || h.e.Did == WriteFailsWritten) && h.k.Rec.Exists && o.State != persist.StatePending &&
			(h.was.Rec.Op.State != o.State || h.was.Rec.Op.Hold != o.Hold) && o.OwedFrom.IsZero()
	}},
	{"24: not sent is said of what was sent", false, func(h *happened) bool {
		d, over := h.ended()
		r := d.Report()
		before := h.from.Procs[max(h.e.By, 0)].Drive
		return over && h.e.Told == ToldNoEffect && slices.Contains(r.Why[:], operation.IsNotSent) && (d.Sends() > 0 || ptr(before.Op()).Sends > 0)
	}},
	{"46: another operation has the key on the wire, and the drive goes on to send", false, func(h *happened) bool {
		if h.e.Did != KeyIsTaken {
			return false
		}
		step := h.to.Procs[h.e.By].Drive.Step()
		return step == operation.Send || step == operation.Draw || step == operation.Wait
	}},
	{"46: another operation has the key on the wire, and its record waits for the next send", false, func(h *happened) bool {
		d, over := h.ended()
		return over && d.Stop() == operation.TakenKey && h.e.Did == Writes && h.k.Rec.Exists && h.k.Rec.Op.State == persist.StatePending
	}},
	{"54, 56: an event proves the operation in whose place it stands, and it waits for the next send", false, func(h *happened) bool {
		d, over := h.ended()
		return over && d.Stop() == operation.OldHappened && h.e.Did == Writes && h.k.Rec.Exists && h.k.Rec.Op.State == persist.StatePending
	}},
	{"48: three equal errors end it", false, func(h *happened) bool {
		d, over := h.ended()
		return over && d.Stop() == operation.ErrorRepeats && h.k.Rec.Exists && h.k.Rec.Op.State != persist.StatePending && h.k.Rec.Op.Hold != persist.HoldCaller
	}},
	{"29: a caller of plain HTTP is shown a success of which nothing is known", false, func(h *happened) bool {
		return h.shown() && h.e.Status < 300 && h.i.Effects == 0
	}},
	{"29: a caller of plain HTTP is shown a refusal, and it took effect, or may", true, func(h *happened) bool {
		return h.shown() && h.e.Status >= 300 && h.e.Status < 500 && h.e.Status != 409 && (h.k.Effects > 0 || h.k.flying())
	}},
}

// shown reports whether, by the checked event, a caller of plain HTTP is shown an answer beside an error.
func (h *happened) shown() bool {
	return h.e.Status != 0 && (h.e.Told == ToldUnknown || h.e.Told == ToldNoEffect || h.e.Told == ToldFinal)
}

// ended returns the drive (the decisions about one operation) of the client whose event is checked, and whether it is
// over after the event.
func (h *happened) ended() (d *operation.Drive, over bool) {
	if h.e.By < 0 {
		return &operation.Drive{}, false
	}
	p := &h.to.Procs[h.e.By]
	if p.Drive == nil {
		return &operation.Drive{}, false
	}
	return p.Drive, p.Active && h.from.Procs[h.e.By].Active && p.Drive.Step() == operation.Over
}
