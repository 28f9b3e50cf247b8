package operation

import (
	"time"
)

// This file decides the end of a drive: the proof leads to the last write, and that to the report. An operation without an effect is forgotten, and its key is looked at
// once more.

// Report is the end of a drive.
type Report struct {
	Answered bool // callers get the answer; else an error
	// Standing is the state of the operation, for the error.
	Standing Standing
	Why      [2]Trouble // the troubles named by the error
	// Unreported: by the record, no caller with the key has learnt of the end.
	Unreported bool
	// MayShow: a caller of plain HTTP may have the answer beside the error.
	MayShow bool
	// Due is the earliest useful time to go on; zero: it is not known or, with AsRecorded, it is in the record.
	Due        time.Time
	AsRecorded bool
	// Left: the operation is left to others, and the call goes on with it later. The rest of the report is for a call given up meanwhile.
	Left bool
}

// ending is the last write of a drive, with the report after it.
type ending struct {
	closing
	report Report
}

// conclude decides the last write after the last attempt, by the proof of all attempts: an end, a mismatch (the server has the key for another request), a withdrawal (no
// effect, by proof), or an unfinished record for a later pass, also after a mismatch in doubt (Hold). (Invariants 2, 4 and 24.)
func (d *ending) conclude() {
	switch {
	case d.given.AskedAgain:
		d.concludeRepeat()
	case d.proof.Kind == ProvesEnd:
		d.beginWrite(EndConfirmed)
	case d.proof.Kind == ProvesMismatch && d.proof.Hold == "":
		d.beginWrite(EndMismatched)
	case (d.proof.Kind == ProvesUnsent || d.proof.Kind == ProvesRefusal) && !d.history.InDoubt():
		d.withdraw()
	default:
		d.beginWrite(LeaveOpen)
	}
}

// concludeRepeat ends the course of a confirmed operation that was sent again, since its answer was too large to keep. The record does not change. Before an error calls
// a recorded refusal final, the journal is flushed: the refusal may not be durable yet. (Invariants 13 and 14.)
func (d *ending) concludeRepeat() {
	if d.proof.Kind == ProvesEnd && !d.proof.Refused && sameEnd(d.op.Status, d.answer.Status) { // a success was asked for again
		d.end(Report{Answered: true, Unreported: d.op.Unreported})
		return
	}
	d.write = WriteNothing
	if d.op.FlushesFirst() {
		d.step = Flush
		return
	}
	d.failRepeat(d.op.Standing)
}

// failRepeat ends a second request for the answer of a confirmed operation, which did not bring it, with the error "the answer is gone". standing is the operation's, as
// recorded; Unclear if the flush failed. The latest answer is not shown: it is not the operation's. (Invariants 9 and 14.)
func (d *ending) failRepeat(standing Standing) {
	d.fail(standing, AnswerGone)
	d.report.Unreported, d.report.MayShow = d.op.Unreported, false
}

// sameEnd reports whether final answers of these statuses can be one answer, given twice: the repeat of a success may have another success's status. (Invariant 4.)
func sameEnd(a, b int) bool { return a == b || a < 300 && b < 300 }

// Written takes the result of the step Write, the last write about the operation. ok: the journal has it. An end that the next sends of the key could not show again
// after a crash is flushed next; any other write ends the course with its report. (Invariants 2, 13 and 14.)
func (d *ending) Written(ok bool, now time.Time) {
	switch d.write {
	case EndConfirmed, EndMismatched, EndAbsent, EndHappened:
		if ok && d.mustFlush(now) {
			d.step = Flush
			return
		}
		d.ended(ok)
	case LeaveOpen:
		d.report.Left = d.goesOn() && d.mayGoOn()
		d.failOpen(d.proof.Trouble())
	case LeaveUnsent:
		d.report.Left = d.goesOn()
		d.failOpen(d.Withdrawn())
	case Forget:
		d.forgotten(ok)
	}
}

// Flushed takes the result of the step Flush, and reports to the caller. ok: all earlier writes are durable. WriteNothing: nothing was written now; the flush was for the
// end recorded by an earlier call. (Invariant 13.)
func (d *ending) Flushed(ok bool) {
	if d.write != WriteNothing {
		d.ended(ok)
		return
	}
	standing := d.op.Standing
	if !ok {
		standing, d.stop = Unclear, JournalFailed
	}
	d.failRepeat(standing)
}

// ended reports a written end. ok: it is written and, if it must be, durable. Without ok callers get the answer all the same: the same key finds it again at the server.
// A final 4xx not stored by the server is the exception: the next answer may differ, so the outcome is unknown. (Invariant 14.)
func (d *ending) ended(ok bool) {
	switch d.write {
	case EndConfirmed:
		if ok || !d.mayChange() {
			d.end(Report{Answered: true, Unreported: d.unreported()})
			return
		}
		d.stop, d.proof.Kind = JournalFailed, ProvesNothing
		d.fail(Unclear)
		d.report.MayShow = false
	case EndMismatched:
		d.fail(d.unlessFailed(ok, Ended), IsMismatch)
	case EndAbsent:
		d.fail(d.unlessFailed(ok, Absent), d.Withdrawn())
	case EndHappened:
		d.fail(d.unlessFailed(ok, Happened), AnswerGone, IsSettled)
	}
}

// unlessFailed returns standing, the state of the operation for an error; Unclear if ok is false, since the journal does not have the end. (Invariant 13.)
func (d *ending) unlessFailed(ok bool, standing Standing) Standing {
	if !ok {
		d.stop = JournalFailed
		return Unclear
	}
	return standing
}

// withdraw takes an operation back that had no effect, by proof. One begun by this call is forgotten, unless a send of it was promised meanwhile, or the call goes on
// with it later. Any other one stays unfinished, as never sent: a pass (Resume or Run) sends it, unless it is held for its caller. (Invariants 2, 18 and 38.)
func (d *ending) withdraw() {
	if d.given.Created && !d.op.Enqueued && !d.goesOn() {
		d.step = LookForPlace
		return
	}
	d.beginWrite(LeaveUnsent)
}

// PlaceFound takes the result of the step LookForPlace, before a record without an effect is forgotten. keeps: records of the same key with other scopes (such as another
// account in a header) rely on this one, so it is settled as absent instead. ok is false if the journal did not tell. (Invariant 38.)
func (d *ending) PlaceFound(keeps, ok bool) {
	switch {
	case !ok:
		d.stop = JournalFailed
		d.fail(Unclear, d.Withdrawn())
	default:
		d.beginWrite(WithdrawnBeside(keeps))
	}
}

// WithdrawnBeside returns the write that takes back an operation without an effect: Forget. keeps: records of its key with other scopes (such as another account in a
// header) stand beside it, and rely on its place. Then it is settled as absent, and stays. (Invariant 38.)
func WithdrawnBeside(keeps bool) Writing {
	if keeps {
		return EndAbsent
	}
	return Forget
}

// forgotten goes on after the removal of a record without an effect. ok: it is gone. Nobody else can know a key made at random for this call. Any other key is looked at
// once more (the step LookForOther): another call may have begun it since. (Invariants 13 and 19.)
func (d *ending) forgotten(ok bool) {
	switch {
	case !ok:
		d.stop = JournalFailed
		d.fail(Open, d.Withdrawn())
	case d.given.OwnKey:
		d.fail(None, d.Withdrawn())
	default:
		d.step = LookForOther
	}
}

// Freed holds the findings at a key after the Forget of its record.
type Freed struct {
	Forgotten bool // the journal has forgotten the record
	Gone      bool // it has no other record of the key, also in no open transaction
	Begun     bool // a call of this process has begun the key since
	MayAppear bool // a Begin of the key was lost, and may show yet
}

// IsFree reports whether nobody has an operation under the key of a record that was just forgotten. Only then may its caller be told "no effect". (Invariants 13 and 19.)
func (f Freed) IsFree() bool { return f.Forgotten && f.Gone && !f.Begun && !f.MayAppear }

// BegunSince returns the report for a caller whose operation was forgotten without an effect, if another call has begun its key anew since. (Invariant 19.)
func BegunSince() Report { return Report{Standing: Unclear, AsRecorded: true} }

// OtherFound takes the result of the step LookForOther, a last look at the key of a forgotten record. found: the key is not free (Freed), and "no effect" cannot be said
// of it. If a new record was read, Moved has made it d.op before. (Invariant 19.)
func (d *ending) OtherFound(found bool) {
	why := d.Withdrawn()
	switch {
	case !found:
		d.fail(None, why)
	case d.op.MaybeSent || why == IsRefused: // by the new begin: the reason of before would deny that
		d.fail(Unclear)
	default:
		d.fail(Unclear, why)
	}
}

// Report returns what the caller is told: the answer, or an error. It is complete once Step is Over.
func (d *ending) Report() Report { return d.report }

// failOpen ends the attempts with an error about an unfinished operation: pending, or held (nothing sends it by itself). why: the trouble, or none. (Invariant 9.)
func (d *ending) failOpen(why Trouble) {
	if d.hold != "" {
		d.fail(Open, IsHeld, why)
		return
	}
	d.fail(Open, why)
}

// fail ends the attempts with an error: the operation's standing, and the troubles why. For an unfinished one the record says when to go on. (Invariants 9 and 29.)
func (d *ending) fail(standing Standing, why ...Trouble) {
	r := Report{Standing: standing, Left: d.report.Left, MayShow: standing == None || standing == Absent || standing == Ended || d.mayShow()}
	copy(r.Why[:], why)
	switch {
	case d.proof.Hold != "":
	case standing == Open, standing == Unclear:
		r.AsRecorded = true
	case d.answer.ID != 0: // the record has no next attempt, if there is one
		r.Due = d.next
	}
	d.end(r)
}

// end ends the attempts: r is the report for the caller.
func (d *ending) end(r Report) { d.step, d.report = Over, r }
