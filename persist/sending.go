package persist

import (
	"slices"
	"strings"
	"time"
)

// AddAttempt appends a to the history, and drops the oldest attempt if there are more than HistoryMax. A longer error text than AttemptErrorBytesMax is cut.
// It never writes into an array shared with another record.
func (r *Record) AddAttempt(a Attempt) {
	if len(a.Error) > AttemptErrorBytesMax {
		a.Error = strings.ToValidUTF8(a.Error[:AttemptErrorBytesMax], "") // the cut may have gone through a character
	}
	from := max(0, len(r.History)+1-HistoryMax)
	r.History = append(slices.Clone(r.History[from:]), a)
}

// ExtendSendUntil sets SendUntil to t, unless it is later already.
func (r *Record) ExtendSendUntil(t time.Time) {
	if t.After(r.SendUntil) {
		r.SendUntil = t
	}
}

// TakeLease gives the record to owner until a time, as a claim does. A lease that was given back has no owner any more. So if another owner is there, its
// lease has ended by itself, and that process may be frozen, with a send on its way: then DesertedUntil, the time until which such a send may be, becomes
// SendUntil, unless it is later already.
func (r *Record) TakeLease(owner string, until time.Time) {
	if r.LeaseOwner != "" && r.LeaseOwner != owner && r.SendUntil.After(r.DesertedUntil) {
		r.DesertedUntil = r.SendUntil
	}
	r.LeaseOwner, r.LeaseUntil = owner, until
}

// MarkedByClaim reports whether [SendClaimer.ClaimToSend] marks the record as maybe sent. now is the time of the claim. It does if the record has no mark yet
// and has everything for a send. A record with a token of the server must have it, and have begun a send with it (Sends > 0): a token never used in a send may
// be too old. If the record is not Protected, it does not: after a crash nobody could say if another send would be the second. It does not mark a sealed
// record, since that does not show its token. It does not mark at SendBefore and past it: after a crash, a mark would let the first send go out late.
func (r *Record) MarkedByClaim(now time.Time) bool {
	late := !r.SendBefore.IsZero() && !now.Before(r.SendBefore)
	return !r.MaybeSent && !late && (!r.ServerToken || r.Token != "" && r.Sends > 0) && r.Protected && r.Carrier != CarrierSealed
}

// Leased reports whether another process than owner has a lease of the record at the time now: until its end only that process drives the operation.
func (r *Record) Leased(owner string, now time.Time) bool {
	return r.LeaseOwner != "" && r.LeaseOwner != owner && now.Before(r.LeaseUntil)
}
