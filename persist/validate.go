package persist

import (
	"cmp"
	"fmt"
)

// Validate reports the first rule broken by the record. Journals call it
// before they write and after they read.
func (r *Record) Validate() error {
	return cmp.Or(r.validateIdentity(), r.validateState(), r.validateBounds())
}

// validateIdentity returns ErrInvalid if the record lacks a part of its identity: key, fingerprint, method, origin, and a key for the wire. The key for the
// wire is either WireKey or, with ServerToken, a Token handed out by the server. Such a record cannot have been sent before it has the Token. Pauses (the
// number of attempts and the times between them) are all zero, or all set.
func (r *Record) validateIdentity() error {
	switch {
	case r.Key == "":
		return fmt.Errorf("%w: empty key", ErrInvalid)
	case len(r.Fingerprint) != 32:
		return fmt.Errorf("%w: fingerprint of %d bytes, want 32", ErrInvalid, len(r.Fingerprint))
	case r.Method == "" || r.Origin == "" || r.WireKey == "" && !r.ServerToken:
		return fmt.Errorf("%w: method, origin and wire key are required", ErrInvalid)
	case r.ServerToken && r.WireKey != "", !r.ServerToken && r.Token != "":
		return fmt.Errorf("%w: a wire key and a server's token in one record", ErrInvalid)
	case r.Pauses != Pauses{} && (r.Pauses.Attempts < 1 || r.Pauses.First < 1 || r.Pauses.Most < r.Pauses.First):
		return fmt.Errorf("%w: pauses %+v, want at least 1 each, and First up to Most", ErrInvalid, r.Pauses)
	case r.ServerToken && r.Token == "" && (r.MaybeSent || r.Sends > 0):
		return fmt.Errorf("%w: maybe sent, but without the server's token", ErrInvalid)
	}
	return nil
}

// validateState returns ErrInvalid if fields contradict the record's state: a hold needs its reason, a final state its time, and a possible send the time of
// the first one. Unreported and KeyTold are for ended operations with a generated key only. OwedFrom (the time from which Config.OnResult is owed the state)
// needs Results: the record was begun for such a callback.
func (r *Record) validateState() error {
	switch {
	case r.State >= stateCount:
		return fmt.Errorf("%w: %v", ErrInvalid, r.State)
	case (r.State == StateHeld) != (r.HoldReason != ""):
		return fmt.Errorf("%w: state %v with reason %q", ErrInvalid, r.State, r.HoldReason)
	case r.MaybeSent && r.FirstSent.IsZero():
		return fmt.Errorf("%w: maybe sent, but never first sent", ErrInvalid)
	case r.State.Final() && r.Finished.IsZero():
		return fmt.Errorf("%w: %v without a time", ErrInvalid, r.State)
	case !r.State.mayHave(r.Effect):
		return fmt.Errorf("%w: state %v with effect %q", ErrInvalid, r.State, r.Effect)
	case r.Unreported && !(r.Generated && r.State.Final()):
		return fmt.Errorf("%w: state %v, generated key %t, but unreported", ErrInvalid, r.State, r.Generated)
	case !r.OwedFrom.IsZero() && !r.Results:
		return fmt.Errorf("%w: a result is owed, and Results is not set", ErrInvalid)
	case r.KeyTold && !(r.Generated && r.State.Final()):
		return fmt.Errorf("%w: state %v, generated key %t, but its key was told", ErrInvalid, r.State, r.Generated)
	}
	return nil
}

// validateBounds returns ErrInvalid if a text or a list of the record is longer than its bound. A sealed record has larger bounds, since its texts
// are encrypted. The lists with rules of their own are checked by the functions called last.
func (r *Record) validateBounds() error {
	note := NoteBytesMax
	if r.Carrier == CarrierSealed {
		note += sealedNoteMax
	}
	switch {
	case len(r.Note) > note:
		return fmt.Errorf("%w: a note of %d bytes, want at most %d", ErrInvalid, len(r.Note), note)
	case len(r.SealedNeeds) > NeedsBytesMax, r.SealedNeeds != "" && r.Carrier != CarrierSealed:
		return fmt.Errorf("%w: SealedNeeds of %d bytes, want at most %d, and none in a record that is not sealed", ErrInvalid, len(r.SealedNeeds), NeedsBytesMax)
	case len(r.SealedEnd) > SealedEndBytesMax, r.SealedEnd != "" && r.Carrier != CarrierSealed:
		return fmt.Errorf("%w: SealedEnd of %d bytes, want at most %d, and none in a record that is not sealed", ErrInvalid, len(r.SealedEnd), SealedEndBytesMax)
	case len(r.Trace) > TraceBytesMax:
		return fmt.Errorf("%w: a trace of %d bytes, want at most %d", ErrInvalid, len(r.Trace), TraceBytesMax)
	case len(r.RedriveRun) > RedriveRunBytesMax+sealedMore(r):
		return fmt.Errorf("%w: a RedriveRun of %d bytes, want at most %d", ErrInvalid, len(r.RedriveRun), RedriveRunBytesMax)
	case len(r.History) > HistoryMax:
		return fmt.Errorf("%w: a history of %d attempts, want at most %d", ErrInvalid, len(r.History), HistoryMax)
	}
	return cmp.Or(r.validateRequest(), r.validateErased(), r.Answer.validate(), r.validateActs(), r.validateKeptFields(), r.validateDropAnswer(), r.validateCredentials(), r.validateScopes(), r.validateEvidence())
}

// sealedMore returns the number of bytes by which a text of r may exceed its bound: the growth by encryption in a sealed record, 0 in any other.
func sealedMore(r *Record) int {
	if r.Carrier == CarrierSealed {
		return sealedNoteMax
	}
	return 0
}

// ReadyToAmend checks a record given to Journal.Amend, which changes a record that has ended. It returns ErrInvalid if the new state is pending, if
// the record is erased, or if Validate does.
func (r *Record) ReadyToAmend() error {
	if r.State == StatePending {
		return fmt.Errorf("%w: an ended operation cannot be pending again", ErrInvalid)
	}
	if r.Erased {
		return fmt.Errorf("%w: an erased record changes no more", ErrInvalid)
	}
	return r.Validate()
}
