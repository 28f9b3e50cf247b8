package persist

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrTaken: a record was to be begun, and its key belongs to an operation not sent by Run, or to another request.
// See [Record.CheckRepeat].
var ErrTaken = errors.New("persist: the key is taken")

// CheckRepeat is for a transaction that began rec and was given r instead, the record that has the key already. It returns nil if the transaction may be
// committed. Then r is as good as rec would be, as after a commit with a lost answer. Such an r is the same request. Either it is pending and enqueued, so
// that Run sends it, or it has ended with the server's answer, or it was settled as happened. The server's answer is then a success or a 202.
//
// Otherwise roll back. The error matches ErrTaken and one verdict:
//   - ErrFinal: another request has the key and has ended; or the same one was refused (Record.Answer) or mismatched, or an event of the API contradicts
//     its end (Record.Evidence); or r is erased.
//   - ErrNoEffect: the same request was settled as absent.
//   - ErrOutcomeUnknown: the same request was refused or settled as absent, and a person has begun it anew (Record.ReplacedBy), or may: no caller was told
//     of its end (Record.Told). Enqueue or DoKey of the request, after the rollback, says the end and notes that a caller knows it; a transaction cannot.
//     Before that, begin nothing under another key.
//   - ErrOutcomeUnknown: the same request was abandoned, is held, was not sent in time, or is only run by a call of Do, which may forget it. Enqueue of the
//     request, outside of a transaction, goes on with the last two.
//   - ErrOutcomeUnknown: another request has the key and has not ended, or was abandoned. Or a later generation of the key (a new try under a key of its
//     own) was sent, and nothing under this one (ActSkipped). Or the requests cannot be compared, since they were read with other SecretHeaders or
//     SecretParameters, or belong to other scopes.
//   - ErrOutcomeUnknown, whatever r is but erased, if r was begun with other credentials than rec: r may be another account's.
//
// To tell another request from a refused one, call Enqueue or DoKey after the rollback: only the first is oncehttp.ErrKeyReused. If r or rec is sealed, the
// error is that of Record.Sealed, with ErrOutcomeUnknown: call CheckRepeat with the unsealed record.
//
// Begin comes first in such a transaction: a row inserted before it fails the transaction the second time, and nobody looks at r. If CheckRepeat returns
// nil, this row stands already.
//
// CheckRepeat says the same as Enqueue would of the same record: a test in internal/operation holds the two together in all states.
func (r *Record) CheckRepeat(rec *Record) error {
	if err := errors.Join(r.Sealed(), rec.Sealed()); err != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	if r.Erased { // of whatever request it was: it was decided
		return fmt.Errorf("%w: %w by an operation whose record was erased: account %q, key %q", ErrFinal, ErrTaken, rec.Account, rec.Key)
	}
	if r.mayBeAnothers(rec) {
		return fmt.Errorf("%w: %w by a request with other credentials, or with none, so that it may be another account's; "+
			"name the account of each request by Config.Account or ContextWithAccount, or settle or assign the operation", ErrOutcomeUnknown, ErrTaken)
	}
	why, verdict := r.repeated(rec)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %w %s: account %q, key %q", verdict, ErrTaken, why, r.Account, r.Key)
}

// repeated is CheckRepeat for a record of the same owner (by its credentials): r stands in the journal, and rec is the one that was to be begun. An empty why
// means that the repeat is harmless. Otherwise why says in words who has used the key, and verdict is the error to report: ErrOutcomeUnknown, ErrFinal if r
// has ended, or ErrNoEffect.
func (r *Record) repeated(rec *Record) (why string, verdict error) {
	same, differ := r.scopesOf(rec)
	switch {
	case differ:
		return "by a request of another scope (" + r.ScopedAccount() + "); prepare it anew, so that it gets a place of its own", ErrOutcomeUnknown
	case !same:
		return "by a client that knows other headers that select an account, so that the requests cannot be compared", ErrOutcomeUnknown
	case r.ID == rec.ID && r.isIncomparable(rec):
		return "by a request that was read with other SecretHeaders or SecretParameters, or by another version, so that the two cannot be compared", ErrOutcomeUnknown
	}
	if IsSkipped(r.Acts) { // r is a placeholder, begun for no request
		return fmt.Sprintf("by no request: the client went on with a later try, %q; go on with that key", r.ReplacedBy), ErrOutcomeUnknown
	}
	verdict = ErrOutcomeUnknown
	if r.State.Final() && r.State != StateAbandoned {
		verdict = ErrFinal
	}
	if r.ID == rec.ID && bytes.Equal(r.Fingerprint, rec.Fingerprint) {
		return r.sameAgain(rec, verdict)
	}
	why = "by another request"
	if effect := r.FinalEffect(); r.Evidence == nil && (effect == EffectRefused || effect == EffectAbsent) {
		why += ", which had no effect; a new try needs a new key (Key.Generation)"
	}
	return why, verdict
}

// sameAgain is repeated for a rec of the same request. verdict is the error that the state of r alone gives, ErrOutcomeUnknown or ErrFinal. An empty
// why means that rec need not begin anything: r happened, or goes on by itself.
func (r *Record) sameAgain(rec *Record, verdict error) (why string, _ error) {
	switch effect := r.FinalEffect(); {
	case effect == EffectHappened:
		return "", nil
	case verdict == ErrFinal && r.Evidence != nil:
		return "by the same request, and an event of the API contradicts its end: it may have happened", verdict
	case (effect == EffectRefused || effect == EffectAbsent) && r.ReplacedBy != "":
		return fmt.Sprintf("by the same request, which had no effect, and was begun anew as %q; go on with that key", r.ReplacedBy), ErrOutcomeUnknown
	case (effect == EffectRefused || effect == EffectAbsent) && !r.Told:
		return "by the same request, which had no effect, and no caller was told so: call Enqueue or DoKey for its end, which notes that you know it, before you begin another one", ErrOutcomeUnknown
	case effect == EffectRefused:
		return fmt.Sprintf("by the same request, which was refused with %d; a new try needs a new key (Key.Generation)", r.FinalStatus()), verdict
	case effect == EffectAbsent:
		return "by the same request, which was settled as absent", ErrNoEffect
	case r.State == StateHeld:
		return "by the same request, which is held: " + string(r.HoldReason), verdict
	case r.State != StatePending:
		return "by the same request, which is " + r.State.String(), verdict
	case !r.Enqueued:
		return "by a call of Do, which may forget it", verdict
	case !r.MaybeSent && !r.SendBefore.IsZero() && rec.Created.After(r.SendBefore): // rec was made just now: its Created is the present
		return "by the same request, which was not sent in time", verdict
	}
	return "", nil
}

// isIncomparable reports whether the fingerprints of two records cannot tell their requests apart. They differ, but were made by different recipes (a
// version and the headers that take part): equal requests may have them. And the contents of the two, where known, are the same. Every version compares
// contents.
func (r *Record) isIncomparable(rec *Record) bool {
	return r.Recipe != rec.Recipe && !bytes.Equal(r.Fingerprint, rec.Fingerprint) && (r.Content == "" || rec.Content == "" || r.Content == rec.Content)
}

// mayBeAnothers reports whether r may be another account's than rec: then the caller of rec must not take r for its own operation. The credentials of both
// decide. If they cannot be compared, a key chosen by a caller, or made of the request, counts as a sign of one account, and a key generated for one call
// (KeyOfOneCall) does not: nobody else can know it.
func (r *Record) mayBeAnothers(rec *Record) bool {
	switch CompareOwners(r.Credentials, rec.Credentials) {
	case SameOwner:
		return false
	case OtherOwner:
		return true
	}
	return r.KeyOfOneCall()
}
