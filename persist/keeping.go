package persist

import (
	"cmp"
	"time"
)

// Limits bounds one Sweep.
type Limits struct {
	_ struct{}

	// Now is the time for measuring ages. Zero: the present, by the clock of a
	// [Claimer], else by the clock of this process.
	Now time.Time
	// Prune shortens the keeping times of the records. Without it a Sweep goes by each record alone (Record.KeepAnswer and
	// Record.KeepKey), whoever calls it.
	Prune bool
	// KeepAnswer is how long after Finished an answer is kept if the record does not say so; less than its Window counts as
	// the Window. With Prune it goes before the record's own value in any case. Zero: as the record says. Negative: not at all.
	KeepAnswer time.Duration
	// KeepKey is, with Prune, how long after Finished the tombstone of a chosen key is kept, and goes before the record's own
	// value. Zero: as the record says. Negative: no longer than the answer. Without Prune it counts for nothing.
	KeepKey time.Duration
	// Max bounds the records changed by this call; zero is 10,000.
	Max int
}

// ExtendKeeping lengthens KeepAnswer and KeepKey to these, if they are longer. Zero leaves each as it is.
func (r *Record) ExtendKeeping(answer, key time.Duration) {
	if answer > max(cmp.Or(r.KeepAnswer, r.Window), 0) {
		r.KeepAnswer = answer
	}
	if r.KeepKey != 0 && key > max(r.KeepKey, 0) {
		r.KeepKey = key
	}
}

// keeping returns how long after its end r keeps its answer and its key. Negative: not at all; for the key, zero: for ever.
func (l *Limits) keeping(r *Record) (answer, key time.Duration) {
	if l.Prune {
		return cmp.Or(l.KeepAnswer, r.KeepAnswer, r.Window), cmp.Or(l.KeepKey, r.KeepKey)
	}
	return cmp.Or(r.KeepAnswer, max(l.KeepAnswer, r.Window)), r.KeepKey
}

// SweepAt returns the earliest time at which a Sweep without Prune may change the record; ever is false if none will. A journal
// can keep an index by it. Finish, MarkReported, MarkDelivered and Sweep change this time.
func (r *Record) SweepAt() (at time.Time, ever bool) {
	kept := r.KeepKey
	switch {
	case !r.State.Final(), r.Owed():
		return time.Time{}, false
	case !r.Swept:
		kept = cmp.Or(r.KeepAnswer, r.Window)
		if over, drops := r.requestUntil(); drops && over.Before(r.Finished.Add(max(kept, 0))) {
			return over, true
		}
	case r.Generated && r.Unreported:
		kept = r.Window
	case r.Generated:
		kept = 0
	case kept == 0:
		return time.Time{}, false
	}
	return r.Finished.Add(max(kept, 0)), true
}

// Sweep returns the effect of a sweep under these limits on r. If drop is true,
// the record goes whole. If strip is true, it becomes a tombstone, or the tombstone of a
// chosen key: see Record.Strip. Before that, strip may be for the request alone: Limits.Strip tells them apart.
func (l *Limits) Sweep(r *Record, now time.Time) (drop, strip bool) {
	if !r.State.Final() || r.Owed() {
		return false, false
	}
	keepAnswer, keepKey := l.keeping(r)
	age := now.Sub(r.Finished)
	answerOver := r.Swept || age >= keepAnswer
	if !answerOver {
		at, ever := r.requestUntil()
		return false, ever && !now.Before(at)
	}
	awaited := r.Unreported && age < r.Window // a caller without a key may still have to hear how it ended
	keyOver := !awaited
	if !r.Generated || r.KeyTold {
		keyOver = !awaited && keepKey != 0 && age >= keepKey && !r.stopsSuccessor()
	}
	return keyOver, !keyOver && (!r.Swept || r.KeyTold && !awaited)
}

// stopsSuccessor reports whether an event proves r against its end, while another operation was begun in its place: that one must find the evidence.
func (r *Record) stopsSuccessor() bool { return r.Evidence != nil && r.ReplacedBy != "" }

// Strip does what Limits.Sweep asks for with strip: it drops the request alone while the answer's time lasts, and else calls
// Record.Strip.
func (l *Limits) Strip(r *Record, now time.Time) {
	if answer, _ := l.keeping(r); !r.Swept && now.Sub(r.Finished) < answer {
		r.DropRequest(now)
		return
	}
	r.Strip()
}

// Strip turns r into a tombstone: the key and its request are remembered by
// fingerprint, with the state, the times, the answer's status, KeptFields, Credentials, Scopes, Content and Evidence.
// The request and the answer are gone. A key that is KeyTold counts as chosen by
// a caller from then on. If the record is Unreported, this comes with a second
// Strip, once Limits.Sweep asks for it.
func (r *Record) Strip() {
	if r.Answer != nil {
		r.Status = r.Answer.Status
	}
	r.Header, r.Body, r.Answer, r.Omitted, r.History, r.Trace, r.RequestDropped = nil, nil, nil, nil, nil, "", false
	if r.KeyTold && (r.Swept || !r.Unreported) {
		r.Generated, r.Unreported, r.KeyTold = false, false, false
	}
	r.Swept = true
}
