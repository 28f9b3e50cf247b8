package acts

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about the claims of a client: who in this process goes on with a claimed record, and whether it is sent by the mark of its claim.

// Running holds the knowledge of a client about its own run of an operation that it has claimed again: the journal could not renew the lease in time.
type Running struct {
	Runs     bool   // a run is under way
	Lost     bool   // another process has, or has had, the operation since its begin
	Revision uint64 // of the run's last write
	Enqueued bool   // as of then
}

// Claimant is whoever goes on with a claimed record.
type Claimant uint8

// The claimants. The zero value is the cautious one.
const (
	RunStops      Claimant = iota // nobody: the run sends nothing more, and the pass meets it
	PassGoesOn                    // the claiming pass
	RunGoesOn                     // the run, with the lease and the revision of the claim
	RunFindsStale                 // the run, with the lease of the claim: its next write meets ErrStale, and takes over revision and promise
)

// GoesOn returns who goes on with a record that this client has just claimed, that is leased for a pass. A run of it that is still under way here goes on with
// the new lease, unless another process has had the operation in between. A run that does not know of a later Enqueue must read the record: at its end the
// promised send counts. (Invariants 12 and 18.)
func (r Running) GoesOn(claimed *persist.Record) Claimant {
	switch {
	case !r.Runs:
		return PassGoesOn
	case r.Lost || !mayRunOn(r.Revision, r.Enqueued, claimed):
		return RunStops
	case claimed.Enqueued && !r.Enqueued:
		return RunFindsStale
	}
	return RunGoesOn
}

// mayRunOn reports whether a run goes on after its client has claimed the record again: since the run's last write, with that revision, only an Enqueue's mark
// and the claim have changed the record. enqueued is that mark as of then. A run with a greater revision has written after the claim. (Invariants 12 and 18.)
func mayRunOn(revision uint64, enqueued bool, claimed *persist.Record) bool {
	return claimed.Revision <= afterEnqueue(revision, enqueued, claimed)+1
}

// MarkAt returns the time at which a claim (it leases due records for a pass) has marked a record as maybe sent; zero if the record counts as unmarked.
// marking: the claim marks; touched: a call has had the operation since the claim was asked for, and may have sent it; at is the time of the claim's marks.
// (Invariants 7, 8 and 12.)
func MarkAt(claimed *persist.Record, marking, touched bool, at time.Time) time.Time {
	if !marking || touched || !claimed.MarkedByClaim(at) {
		return time.Time{}
	}
	return at
}

// ClaimMark is the mark of a claim on a record, as its client knows it.
type ClaimMark struct {
	At       time.Time     // zero: the claim did not mark the record, or a call has had it since
	Revision uint64        // of the record with the mark
	Until    time.Time     // the end of its lease
	Length   time.Duration // of a lease
	Runs     bool          // a run of the operation is under way
	Lost     bool          // another process has, or has had, the operation
}

// AllowsSend reports whether a record may be sent without a further write, since its claim has marked it as maybe sent. Nothing may have happened to the record
// since, and its lease must last at now, the latest possible time. The claim must not be older than a lease: the key's window counts from the mark, long before
// the send. (Invariants 7, 8 and 12.)
func (m ClaimMark) AllowsSend(rec *persist.Record, now time.Time) bool {
	switch {
	case m.Runs, m.Lost, m.At.IsZero(), m.Revision != rec.Revision:
		return false
	}
	return now.Before(m.Until) && now.Sub(m.At) <= m.Length
}

// Marked returns the record as its claim has written it into the journal: maybe sent, and leased. sending is how long a send begun now may be on its way.
// (Invariants 7 and 31.)
func (m ClaimMark) Marked(rec persist.Record, sending time.Duration) persist.Record {
	rec.MaybeSent, rec.FirstSent, rec.LeaseUntil = true, m.At, m.Until
	rec.ExtendSendUntil(m.At.Add(sending))
	return rec
}

// Unleased returns the record without its lease, to be written as ended, held, or left to others. owner has the lease, or it has ended. If another process has
// lost it, a send of that process may still be on its way, and the record keeps the time until when. (Invariants 12 and 31.)
func Unleased(rec persist.Record, owner string) persist.Record {
	rec.TakeLease(owner, time.Time{})
	rec.LeaseOwner = ""
	return rec
}
