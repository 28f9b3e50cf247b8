package codec

import (
	"encoding/binary"
	"net/http"

	"github.com/oncehttp/oncehttp/persist"
)

// IntentSize returns an upper bound of the size of r's encoded intent, the part frozen by Begin. A body of up to limit bytes is counted with it. A body longer
// than limit is stored elsewhere. So the caller's buffer need not grow. fixed is enough for all numbers, times and lengths outside the lists.
func IntentSize(r *persist.Record, limit int) int {
	n := fixed + len(r.Account) + len(r.Key) + len(r.Fingerprint) + len(r.Origin) + len(r.Method) + len(r.Target) +
		len(r.Carrier) + len(r.CarrierName) + len(r.WireKey) + len(r.Profile) + len(r.ProfileVersion) + len(r.Recipe) +
		headerSize(r.Header)
	for _, s := range r.Omitted {
		n += binary.MaxVarintLen32 + len(s)
	}
	for _, pointer := range r.DropAnswer {
		n += binary.MaxVarintLen32 + len(pointer)
	}
	for i := range r.KeptFields {
		n += 2*binary.MaxVarintLen32 + 1 + len(r.KeptFields[i].Pointer) + len(r.KeptFields[i].Value)
	}
	for i := range r.Credentials {
		n += 2*binary.MaxVarintLen32 + len(r.Credentials[i].Name) + len(r.Credentials[i].Digest)
	}
	n += len(r.Facts) + len(r.Content) + len(r.Trace)
	for i := range r.Scopes {
		n += 2*binary.MaxVarintLen32 + len(r.Scopes[i].Name) + len(r.Scopes[i].Value)
	}
	if len(r.Body) <= limit {
		n += len(r.Body)
	}
	return n
}

// ProgressSize returns an upper bound of the size of r's encoded progress, the changeable part. An answer's body of up to limit bytes is counted with it; a
// longer one is stored elsewhere. fixed is enough for all numbers, times and lengths outside the lists.
func ProgressSize(r *persist.Record, limit int) int {
	n := fixed + len(r.HoldReason) + len(r.Effect) + len(r.LeaseOwner) + len(r.Note) + len(r.Token) + len(r.Replaces) + len(r.Credential) + len(r.Region) + len(r.SealedNeeds) + len(r.ReplacedBy) + len(r.RedriveRun) + len(r.SealedEnd)
	for i := range r.Acts {
		n += 6*binary.MaxVarintLen64 + len(r.Acts[i].Did) + len(r.Acts[i].Note) // the factors here are generous: no entry has more numbers and lengths
	}
	if e := r.Evidence; e != nil {
		n += 6*binary.MaxVarintLen64 + len(e.Event) + len(e.Type) + len(e.By) + len(e.Scheme) + len(e.Digest)
	}
	for i := range r.History {
		n += 8*binary.MaxVarintLen64 + len(r.History[i].Error)
	}
	if a := r.Answer; a != nil {
		n += headerSize(a.Header)
		for _, pointer := range a.Dropped {
			n += binary.MaxVarintLen32 + len(pointer)
		}
		if len(a.Body) <= limit {
			n += len(a.Body)
		}
	}
	return n
}

// headerSize returns an upper bound of the size of an encoded header. Each text needs its length, and each name the number of its values.
func headerSize(h http.Header) int {
	n := 0
	for name, values := range h {
		n += 2*binary.MaxVarintLen32 + len(name)
		for _, v := range values {
			n += binary.MaxVarintLen32 + len(v)
		}
	}
	return n
}
