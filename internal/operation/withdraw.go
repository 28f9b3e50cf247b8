package operation

// This file holds the way of an operation without an effect: it is forgotten, and its key is looked at once more.

// withdraw ends a drive without an effect, by proof. It forgets an operation begun by this drive, unless a send was promised meanwhile, or the call
// goes on with it. Any other operation stays unfinished, as never sent: a pass will send it, unless it is held for its caller. (Invariants 2, 18 and 38.)
func (d *Drive) withdraw() {
	if d.given.Created && !d.op.Enqueued && !d.goesOn() {
		d.step = LookForPlace
		return
	}
	d.beginWrite(LeaveUnsent)
}

// Withdrawn returns the trouble of an operation without an effect, by proof. No error names IsNotSent of an operation that may have been sent. (Invariant 2.)
func (d *Drive) Withdrawn() Trouble {
	if d.proof.Kind == ProvesRefusal {
		return IsRefused
	}
	return IsNotSent
}

// PlaceFound takes the finding of the step LookForPlace. keeps: other scopes stand beside the record; then it is settled as absent. ok is false if the
// journal did not tell. (Invariant 38.)
func (d *Drive) PlaceFound(keeps, ok bool) {
	switch {
	case !ok:
		d.stop = JournalFailed
		d.fail(Unclear, d.Withdrawn())
	default:
		d.beginWrite(WithdrawnBeside(keeps))
	}
}

// WithdrawnBeside returns the writing that takes back an operation without an effect. keeps: other scopes stand beside its record. Then it is settled
// as absent, and keeps its place. (Invariant 38.)
func WithdrawnBeside(keeps bool) Writing {
	if keeps {
		return EndAbsent
	}
	return Forget
}

// forgotten ends the drive of a forgotten operation. ok: its record is gone. (Invariants 13 and 19.)
func (d *Drive) forgotten(ok bool) {
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

// IsFree reports whether nobody has an operation under the key: "no effect" is the truth about it. (Invariants 13 and 19.)
func (f Freed) IsFree() bool { return f.Forgotten && f.Gone && !f.Begun && !f.MayAppear }

// BegunSince returns the report in place of that of a free key: another call has begun it before the caller has the result. (Invariant 19.)
func BegunSince() Report { return Report{Standing: Unclear, AsRecorded: true} }

// OtherFound takes the result of the step LookForOther. found: the key is not free (Freed). If a new record was read, Moved comes first. (Invariant 19.)
func (d *Drive) OtherFound(found bool) {
	why := d.Withdrawn()
	switch {
	case !found:
		d.fail(None, why)
	case d.op.MaybeSent || why == IsRefused: // by the new begin
		d.fail(Unclear)
	default:
		d.fail(Unclear, why)
	}
}
