package persist

import (
	"cmp"
	"time"
)

// This file holds the rules of forgetting. They stand here, and not beside the other decisions: each journal, also one of another module, applies them in its
// own Sweep. The numbers are those of docs/invariants.md; internal/operation/explore holds the rules to them.

// Limits bounds one Sweep.
type Limits struct {
	_ struct{}

	// Now is the time for measuring ages. Zero: the present, by the clock of a
	// [Claimer], else by the clock of this process.
	Now time.Time
	// Prune shortens the keeping times of the records. Without it a Sweep goes by each record alone (Record.KeepAnswer,
	// Record.KeepKey and Record.KeepText), whoever calls it.
	Prune bool
	// KeepAnswer is how long after Finished an answer is kept if the record does not say so; less than its Window counts as
	// the Window. With Prune it goes before the record's own value in any case. Zero: as the record says. Negative: not at all.
	KeepAnswer time.Duration
	// KeepKey is, with Prune, how long after Finished the tombstone of a chosen key is kept, and goes before the record's own
	// value. Zero: as the record says. Negative: no longer than the answer. Without Prune it counts for nothing.
	KeepKey time.Duration
	// KeepText is, with Prune, how long after Finished the tombstone of a chosen key keeps its text, and goes before the record's
	// own value. Zero: as the record says. Negative: no longer than the answer. Without Prune it counts for nothing.
	KeepText time.Duration
	// Max bounds the records changed by this call; zero is 10,000.
	Max int
}

// ExtendKeeping lengthens the times for which an ended record keeps its answer, its key and its text (KeepAnswer, KeepKey, KeepText), where the given ones are
// longer. It shortens none. A KeepAnswer of zero stands for the Window (the time in which the API knows the key), a negative time for no keeping at all. A
// KeepKey or KeepText of zero is the longest already, and stays. (Invariant 34.)
func (r *Record) ExtendKeeping(answer, key, text time.Duration) {
	if answer > max(cmp.Or(r.KeepAnswer, r.Window), 0) {
		r.KeepAnswer = answer
	}
	if r.KeepKey != 0 && key > max(r.KeepKey, 0) {
		r.KeepKey = key
	}
	if r.KeepText != 0 && text > max(r.KeepText, 0) {
		r.KeepText = text
	}
}

// keeping returns how long after its end r keeps its answer and its key, by the record's own times and those of the sweep. With Prune (somebody asks to sweep
// more than the records' own times allow), the sweep's times go first, and may be shorter. Without it, they count for the answer alone, if the record has no
// time of its own; such an answer stays for the Window at least, in which the API knows the key. Negative: not at all. For the key, zero is for ever.
// (Invariant 34.)
func (l *Limits) keeping(r *Record) (answer, key time.Duration) {
	if l.Prune {
		return cmp.Or(l.KeepAnswer, r.KeepAnswer, r.Window), cmp.Or(l.KeepKey, r.KeepKey)
	}
	return cmp.Or(r.KeepAnswer, max(l.KeepAnswer, r.Window)), r.KeepKey
}

// keepingText returns how long after its end r keeps its text: the account, key and request data that name it. With Prune (somebody asks to sweep more than
// the records' own times allow), the sweep's time goes before the record's. Negative: no longer than the answer. Zero: as long as the key. (Invariant 34.)
func (l *Limits) keepingText(r *Record) time.Duration {
	if l.Prune {
		return cmp.Or(l.KeepText, r.KeepText)
	}
	return r.KeepText
}

// textUntil returns the time from which a sweep takes the text out of r, the tombstone of a chosen key, if it keeps the text for keep after its end (0: for
// ever). The text is all that may name a person. ever is false if no sweep does. at is never before the last send has ended (SendUntil and DesertedUntil: a
// send may be on its way until then), nor before the end of the Window since FirstSent: until then the API may know the key. The same rule holds for Erase.
// (Invariant 57.)
func (r *Record) textUntil(keep time.Duration) (at time.Time, ever bool) {
	if keep == 0 || r.Generated || !r.mayLoseText() {
		return time.Time{}, false
	}
	at = r.Finished.Add(max(keep, 0))
	for _, end := range []time.Time{r.SendUntil, r.DesertedUntil} {
		if end.After(at) {
			at = end
		}
	}
	if known := r.FirstSent.Add(r.Window); !r.FirstSent.IsZero() && known.After(at) {
		at = known
	}
	return at, true
}

// mayLoseText reports whether a sweep may take the text (account, key and all else that may name a person) out of an ended record: only a comparison with a
// repeat needs it. Its effect is known, and its end was told. It keeps no fields of its request. It names an account, or carried no credentials: else these
// tell its owner from a stranger with the same key. No operation has replaced it, it has replaced none, and no event of the API is evidence: who goes on with
// these reads its text. A sealed (encrypted) record must not be one that needs this text to be decrypted: only one with a SealedEnd can be read without.
// (Invariants 54, 56 and 57.)
func (r *Record) mayLoseText() bool {
	sealed := r.Carrier == CarrierSealed && r.SealedEnd == ""
	linked := r.ReplacedBy != "" || r.Replaces != "" || r.Evidence != nil
	if r.Account == "" && len(r.Credentials) > 0 { // then its credentials tell whose the key is
		return false
	}
	return !r.Erased && !linked && !r.Unreported && !r.Owed() && len(r.KeptFields) == 0 && !sealed && r.FinalEffect() != EffectUnknown
}

// SweepAt returns the earliest time at which a Sweep without Prune may change the record; ever is false if none will: the record has not ended, its end is
// owed to Config.OnResult, or it is kept for ever. A journal can keep an index by it. Finish, MarkReported, MarkDelivered and Sweep change this time.
// (Invariant 34.)
func (r *Record) SweepAt() (at time.Time, ever bool) {
	var kept time.Duration
	switch {
	case !r.State.Final(), r.Owed():
		return time.Time{}, false
	case !r.Swept:
		kept = cmp.Or(r.KeepAnswer, r.Window)
		if over, drops := r.requestUntil(); drops && over.Before(r.Finished.Add(max(kept, 0))) {
			return over, true // the body goes before the answer
		}
	case r.Generated && r.Unreported: // a caller without a key may still have to hear how it ended
		kept = r.Window
	case r.Generated:
		kept = 0 // its end was told since: the next sweep removes it, or keeps its key from then on
	default:
		return r.tombstoneUntil()
	}
	return r.Finished.Add(max(kept, 0)), true
}

// tombstoneUntil returns the time of the next sweep of a tombstone: a record without its answer and request, left to remember a key that a caller chose. That
// is the earlier of two times, at which it loses its text, or is removed. ever is false if neither comes. A KeepKey of zero is for ever, a negative one no
// time at all; evidence that a next try must find stays, too (stopsSuccessor). (Invariants 34 and 56.)
func (r *Record) tombstoneUntil() (at time.Time, ever bool) {
	at, ever = r.textUntil(r.KeepText)
	if r.KeepKey == 0 || r.stopsSuccessor() {
		return at, ever
	}
	if gone := r.Finished.Add(max(r.KeepKey, 0)); !ever || gone.Before(at) {
		return gone, true
	}
	return at, true
}

// Sweep returns what a sweep under these limits does with r at the time now; it changes nothing. If drop is true, the record is to be removed whole. If
// strip is true, Limits.Strip is to be called: it removes the body of the request alone, or request and answer (a tombstone is left, and remembers the key),
// or the text of the tombstone. Both are false for a record that stays as it is: one that has not ended, one whose end is owed to Config.OnResult, and one
// whose times are not over. (Invariants 3, 17, 34, 53 and 56.)
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
	keyOver := !awaited && !r.stopsSuccessor()
	if !r.Generated || r.keepsGenerated() { // any other generated key is known to nobody, and goes with its answer
		keyOver = keyOver && keepKey != 0 && age >= keepKey
	}
	// Stripped are a record with its answer, a generated key that is kept from now on, and a tombstone at the end of its text.
	return keyOver, !keyOver && (!r.Swept || r.keepsGenerated() && !awaited || l.textOver(r, now))
}

// textOver reports whether a tombstone (Swept: answer and request are gone) loses its text at now, under these limits. The text is its account, its key and
// all else that may name a person. Digests of account and key are left, so that a repeat still finds it. (Invariant 57.)
func (l *Limits) textOver(r *Record, now time.Time) bool {
	at, ever := r.textUntil(l.keepingText(r))
	return ever && r.Swept && !now.Before(at)
}

// keepsGenerated reports whether the generated key of an ended record is kept as if a caller had chosen it: an error may have told it, a person has begun
// another operation in its place or has begun this one, and was told its key, or evidence must stay. (Invariants 17, 34, 54 and 56.)
func (r *Record) keepsGenerated() bool {
	return r.Generated && (r.KeyTold || r.ReplacedBy != "" || r.Replaces != "" || r.stopsSuccessor())
}

// stopsSuccessor reports whether no sweep may forget r because of its evidence, an event of the API that says that the operation took effect. That is so if r
// ended otherwise, or if another operation was begun in its place. A next generation of the key (a new try under a key of its own) must find the evidence, and
// r cannot tell if there will be one: nothing in r names a generation that the program begins. (Invariant 56.)
func (r *Record) stopsSuccessor() bool {
	return r.Evidence != nil && (r.ReplacedBy != "" || r.FinalEffect() != EffectHappened)
}

// Strip does what Limits.Sweep asks for with strip: it drops the request alone while the answer's time lasts, and else calls Record.Strip. If the time of the
// text is over, it calls Record.Erase, too, under the secret of the journal: then the journal writes the record with [ErasedID], as its method Erase does. A
// journal that keeps all texts sets KeepText of the record and of the limits to zero before Limits.Sweep: then no text is ever over. (Invariant 34.)
func (l *Limits) Strip(r *Record, now time.Time, secret []byte) {
	if answer, _ := l.keeping(r); !r.Swept && now.Sub(r.Finished) < answer {
		r.DropRequest(now)
		return
	}
	r.Strip()
	if l.textOver(r, now) {
		r.Erase(secret)
	}
}

// Strip turns r into a tombstone: the key and its request are remembered by
// fingerprint, with the state, the times, the answer's status, KeptFields, Credentials, Scopes, Content and Evidence.
// The request and the answer are gone. A generated key counts as chosen by a caller from
// then on if it is KeyTold, or the record has ReplacedBy, Replaces, or Evidence against its end. If the
// record is Unreported, this comes with a second Strip, once Limits.Sweep asks for it. (Invariants 9, 17, 54 and 56.)
func (r *Record) Strip() {
	if r.Answer != nil {
		r.Status = r.Answer.Status
	}
	r.Header, r.Body, r.Answer, r.Omitted, r.History, r.Trace, r.RequestDropped = nil, nil, nil, nil, nil, "", false
	if r.keepsGenerated() && (r.Swept || !r.Unreported) {
		r.Generated, r.Unreported, r.KeyTold = false, false, false
	}
	r.Swept = true
}
