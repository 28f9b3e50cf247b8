package keylayer

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"

	"github.com/oncehttp/oncehttp/profile"
)

// Digest tells two things apart without keeping them.
type Digest [sha256.Size]byte

// DigestOf hashes the parts so that no two lists of parts are confused.
func DigestOf(parts ...string) Digest {
	h := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return Digest(h.Sum(nil))
}

// principal is whose keys these are: the caller, or else the credential, and what
// the profile says selects an account. Only its digest is kept.
func (l *Layer) principal(r *http.Request) []string {
	parts := []string{r.Header.Get("Authorization")}
	if l.Caller != nil {
		parts[0] = l.Caller(r)
	}
	for _, name := range l.Profile.AccountHeaders {
		parts = append(parts, r.Header.Get(name))
	}
	return parts
}

// Principal tells the callers apart whose keys and tokens these are.
func (l *Layer) Principal(r *http.Request) Digest { return DigestOf(l.principal(r)...) }

// Fingerprint is what a key names: target, content type, the profile's headers
// and the body: byte for byte, unless the profile compares what it says.
func (l *Layer) Fingerprint(r *http.Request, body []byte) Digest {
	parts := []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type")}
	for _, name := range l.Profile.Fingerprint {
		parts = append(parts, r.Header.Get(name))
	}
	if l.Profile.FirstSent != "" {
		parts = append(parts, r.Header.Get(l.Profile.FirstSent))
	}
	if l.Profile.Body.Compared == profile.ByValues {
		body = valuesOf(r, body)
	}
	parts = append(parts, string(body))
	if l.Bug.Print != nil {
		parts = l.Bug.Print(r, parts)
	}
	return DigestOf(parts...)
}

// Scope is the key together with whose it is.
func (l *Layer) Scope(x *Exchange) Digest {
	parts := append(l.principal(x.Request), x.Key.Key)
	if l.Bug.Scope != nil {
		parts = l.Bug.Scope(x, parts)
	}
	return DigestOf(parts...)
}
