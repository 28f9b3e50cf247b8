package persist

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrTaken: the key of a record that was to be begun belongs to an operation that Run does not send, or to another request.
// See [Record.CheckRepeat].
var ErrTaken = errors.New("persist: the key is taken")

// CheckRepeat says whether a transaction may be committed that began rec and was given r instead, which had been begun before.
// It is nil if that is as good as if rec had been begun, as after a commit whose answer was lost: r is the same request, and
// either is pending and enqueued, so that Run sends it, or has ended with the server's answer, or was settled as happened. That
// answer is a success or a 202.
//
// Otherwise roll back. The error matches ErrTaken and one verdict. ErrFinal: another request has the key and has ended, or the
// same one was refused (Record.Answer) or mismatched. ErrNoEffect: the same request was settled as absent. ErrOutcomeUnknown:
// the requests cannot be compared, since they were read with other SecretHeaders or SecretParameters; another request has the key;
// or the same one was abandoned, is held, was not sent in time, or is only run by a call of Do, which may forget it; Enqueue of the request, outside of a transaction, goes on with the last two. It is ErrOutcomeUnknown, too,
// whatever r is, where r was begun with other credentials than rec, so that it may be another account's. Where r or rec is sealed, the
// error is that of Record.Sealed, with ErrOutcomeUnknown: call it with what was unsealed.
//
// Begin comes first in such a transaction: a row that is inserted before fails it the second time, and nobody looks at r. Where
// CheckRepeat is nil, that row stands already.
func (r *Record) CheckRepeat(rec *Record) error {
	if err := errors.Join(r.Sealed(), rec.Sealed()); err != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	if r.mayBeAnothers(rec) {
		return fmt.Errorf("%w: %w by a request with other credentials, or with none, so that it may be another account's; "+
			"name the account of each request by Config.Account or ContextWithAccount, or settle or assign the operation", ErrOutcomeUnknown, ErrTaken)
	}
	verdict, why := ErrOutcomeUnknown, ""
	if r.State.Final() && r.State != StateAbandoned {
		verdict = ErrFinal
	}
	same, differ := r.scopesOf(rec)
	switch effect := r.FinalEffect(); {
	case differ:
		why = "by a request of another scope (" + r.ScopedAccount() + "); prepare it anew, so that it gets a place of its own"
		verdict = ErrOutcomeUnknown
	case !same:
		why, verdict = "by a client that knows other headers that select an account, so that the requests cannot be compared", ErrOutcomeUnknown
	case r.ID == rec.ID && r.isIncomparable(rec):
		why, verdict = "by a request that was read with other SecretHeaders or SecretParameters, or by another version, so that the two cannot be compared", ErrOutcomeUnknown
	case r.ID != rec.ID || !bytes.Equal(r.Fingerprint, rec.Fingerprint):
		why = "by another request"
		if effect == EffectRefused || effect == EffectAbsent {
			why += ", which had no effect; a new try needs a new key (Key.Generation)"
		}
	case effect == EffectHappened:
		return nil
	case effect == EffectRefused:
		why = fmt.Sprintf("by the same request, which was refused with %d; a new try needs a new key (Key.Generation)", r.FinalStatus())
	case effect == EffectAbsent:
		verdict, why = ErrNoEffect, "by the same request, which was settled as absent"
	case r.State == StateHeld:
		why = "by the same request, which is held: " + string(r.HoldReason)
	case r.State != StatePending:
		why = "by the same request, which is " + r.State.String()
	case !r.Enqueued:
		why = "by a call of Do, which may forget it"
	case !r.MaybeSent && !r.SendBefore.IsZero() && rec.Created.After(r.SendBefore):
		why = "by the same request, which was not sent in time"
	default:
		return nil
	}
	return fmt.Errorf("%w: %w %s: account %q, key %q", verdict, ErrTaken, why, r.Account, r.Key)
}

// isIncomparable reports whether the fingerprints of two records cannot tell their requests apart: they have different recipes, and their contents,
// which every version compares, do not differ.
func (r *Record) isIncomparable(rec *Record) bool {
	return r.Recipe != rec.Recipe && !bytes.Equal(r.Fingerprint, rec.Fingerprint) && (r.Content == "" || rec.Content == "" || r.Content == rec.Content)
}

// mayBeAnothers reports whether r may be another account's than rec. Where their credentials cannot be compared, a key that a caller
// chose tells more than they; one that was made does not.
func (r *Record) mayBeAnothers(rec *Record) bool {
	switch CompareOwners(r.Credentials, rec.Credentials) {
	case SameOwner:
		return false
	case OtherOwner:
		return true
	}
	return r.Generated && !r.Business
}
