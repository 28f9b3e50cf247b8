package persist

import (
	"fmt"
	"slices"
	"time"
)

// Attempt is one try to send an operation, for operators to look at.
type Attempt struct {
	// At is when it began.
	At time.Time
	// Took is how long it was, to its answer or error.
	Took time.Duration
	// Status is the answer's; 0 if there was none.
	Status int
	// Sent: it was handed to the network, or may have been.
	Sent bool
	// Error is the reason for a missing answer, in at most AttemptErrorBytesMax; it holds
	// no body, no credential and no query string.
	Error string
}

// The bounds of the data kept for operators.
const (
	// HistoryMax is how many attempts a record keeps.
	HistoryMax = 16
	// ActsMax is how many acts a record keeps.
	ActsMax = 8
	// NoteBytesMax is how long a note may be.
	NoteBytesMax = 1000
	// RedriveRunBytesMax is how long Record.RedriveRun may be.
	RedriveRunBytesMax = 64
	// AttemptErrorBytesMax is how long the error of an attempt may be.
	AttemptErrorBytesMax = 200
)

// Act is an act of a person on an operation, or of Config.Reconcile, for operators to look at. ActSkipped is no person's: a client wrote it.
type Act struct {
	// At is when it was.
	At time.Time
	// Did is the act: one of the words below.
	Did string
	// Note is the reason given for it, with its author where the caller gave one. At most NoteBytesMax.
	Note string
}

// The values of Act.Did.
const (
	ActHappened     = "settled as happened"
	ActHappenedTold = "settled as happened, and told to a caller"
	ActAbsent       = "settled as absent"
	ActAbsentTold   = "settled as absent, and told to a caller"
	ActAbandoned    = "abandoned"
	ActReopened     = "reopened"
	// ActSkipped: nothing was begun under the key, and a later generation of it (Record.ReplacedBy) was about to be sent. The client that sends that
	// one has begun the record, so that nothing is begun under the key any more.
	ActSkipped = "skipped"
)

// IsSkipped reports whether a record with these acts is a placeholder (ActSkipped). It is no operation, and nothing was sent under its key. A client begins
// it before it sends a later generation of the key (a new try under a key of its own), so that nobody begins anything under this key any more.
func IsSkipped(acts []Act) bool {
	return slices.ContainsFunc(acts, func(a Act) bool { return a.Did == ActSkipped })
}

// Acted adds an act of a person, such as a settlement, to the record's Acts. At most ActsMax are kept: the oldest are left out.
func (r *Record) Acted(a Act) {
	kept := r.Acts[max(len(r.Acts)+1-ActsMax, 0):]
	r.Acts = append(slices.Clone(kept), a)
}

// TookAbsenceBack reports whether these acts, oldest first, settle the operation as absent (it had no effect), whether a caller was told of it (ActAbsentTold)
// or not, and later reopen it. A caller may have been told in between that there was no effect.
func TookAbsenceBack(acts []Act) bool {
	absent := slices.IndexFunc(acts, func(a Act) bool { return a.Did == ActAbsent || a.Did == ActAbsentTold })
	return absent >= 0 && slices.ContainsFunc(acts[absent:], func(a Act) bool { return a.Did == ActReopened })
}

// validateActs checks the number of acts and the lengths of their texts: the note, and the kind of act (Did). It returns ErrInvalid past a bound. In a sealed
// record (see package persist/seal) one encrypted note holds all acts, with what is needed to compare them, so its bound is larger.
func (r *Record) validateActs() error {
	if len(r.Acts) > ActsMax {
		return fmt.Errorf("%w: %d acts, want at most %d", ErrInvalid, len(r.Acts), ActsMax)
	}
	most := NoteBytesMax
	if r.Carrier == CarrierSealed {
		most = ActsMax*(NoteBytesMax+200) + 4*sealedNoteMax // 200 bytes for the other fields of each act, and room for digests and the seal
	}
	for _, a := range r.Acts {
		if len(a.Note) > most || len(a.Did) > 100 {
			return fmt.Errorf("%w: an act with a note of %d bytes, want at most %d", ErrInvalid, len(a.Note), most)
		}
	}
	return nil
}
