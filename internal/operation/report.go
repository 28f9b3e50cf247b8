package operation

import "time"

// This file decides the report to callers at the end of a drive.

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

// Report returns the end of the drive, after the step Over.
func (d *Drive) Report() Report { return d.report }

// Standing returns the standing of the operation by the drive: by its evidence, or by the counting answer; Unclear if neither ends it. (Invariants 2, 9 and 56.)
func (d *Drive) Standing() Standing {
	switch {
	case d.write == EndHappened:
		return Happened
	case d.proof.Kind == ProvesEnd && d.answer.ID != 0:
		return Answered(d.answer.Status, d.proof.AlreadyDone, d.proof.Refused)
	}
	return Unclear
}

// failOpen ends the drive with an error about an operation left unfinished by the last Change. (Invariant 9.)
func (d *Drive) failOpen(why Trouble) {
	if d.hold != "" {
		d.fail(Open, IsHeld, why)
		return
	}
	d.fail(Open, why)
}

// fail ends the drive with an error about an operation of this standing. (Invariants 9 and 29.)
func (d *Drive) fail(standing Standing, why ...Trouble) {
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

func (d *Drive) end(r Report) { d.step, d.report = Over, r }

// mayShow reports whether a caller of plain HTTP may get the last answer as its response although the outcome is unknown. 409 and 5xx claim
// nothing. A 2xx claims too much. A redirect would be followed. Any other answer suggests "nothing happened". Such a caller must not see it if
// something may have happened: after an earlier attempt in doubt, or with a record still in place, maybe taken up by another process. (Invariant 29.)
func (d *Drive) mayShow() bool {
	status := d.answer.Status
	if status == 409 || status >= 500 {
		return true
	}
	return status >= 400 && !d.doubtBefore && d.proof.Kind == ProvesNothing
}
