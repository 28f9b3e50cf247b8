package persist

import (
	"fmt"
	"time"
)

// Evidence is an event of the API, such as a webhook's, that proves the effect of an operation. It has no body of the event.
type Evidence struct {
	// Event is the event's id, as the API spells it; empty: it has none.
	Event string
	// Type is the event's type.
	Type string
	// By is the name by which the event names the operation: "key", or the pointer of its reference in the request.
	By string
	// Scheme is the name of the signature's scheme.
	Scheme string
	// Digest is the SHA-256 of the event's body, 32 bytes.
	Digest string
	// At is when it was stored.
	At time.Time
}

// EvidenceTextMax is how long each text of an Evidence may be.
const EvidenceTextMax = 255

// validateEvidence returns ErrInvalid if the record's Evidence, an event of the API that proves the effect, lacks a required field or has a text past
// its bound. The texts of a sealed record are encrypted, and so longer. A record without evidence is valid.
func (r *Record) validateEvidence() error {
	e := r.Evidence
	if e == nil {
		return nil
	}
	most := EvidenceTextMax
	if r.Carrier == CarrierSealed {
		most = 5*EvidenceTextMax + sealedNoteMax // all texts are encrypted as one, in the field Type
	}
	switch {
	case len(e.Event) > most || len(e.Type) > most || len(e.By) > most || len(e.Scheme) > most:
		return fmt.Errorf("%w: evidence with a text over %d bytes", ErrInvalid, most)
	case e.By == "" || e.Type == "" || len(e.Digest) != 32 || e.At.IsZero():
		return fmt.Errorf("%w: evidence without type, name, time, or digest of 32 bytes", ErrInvalid)
	}
	return nil
}
