package keylayer

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"

	"github.com/oncehttp/oncehttp/profile"
)

// Digest identifies a list of texts without keeping them.
type Digest [sha256.Size]byte

// DigestOf hashes the parts with their lengths, so that different lists give different digests.
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

// principal returns the parts that identify the owner of a request's keys, to keep the same key of two callers apart: the caller (or else the
// Authorization header) and the profile's account headers.
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

// Principal returns the digest of the caller who owns the request's keys and tokens.
func (l *Layer) Principal(r *http.Request) Digest { return DigestOf(l.principal(r)...) }

// Fingerprint returns the digest of the request that a key names, by which a repeat is told from another request: target, content type, the profile's
// headers, and the body, byte for byte or (Body.Compared) by its values. Bug.Print is the function of a deliberate bug; nil in a correct layer.
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

// Scope returns the id under which the store has the key of a request: a digest of the caller and the key. Bug.Scope is the function of a deliberate
// bug; nil in a correct layer.
func (l *Layer) Scope(x *Exchange) Digest {
	parts := append(l.principal(x.Request), x.Key.Key)
	if l.Bug.Scope != nil {
		parts = l.Bug.Scope(x, parts)
	}
	return DigestOf(parts...)
}
