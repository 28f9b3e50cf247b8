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

// principal is whose keys these are: the credential, and what the profile says
// selects an account. Only its digest is kept.
func principal(p *profile.Profile, h http.Header) []string {
	parts := []string{h.Get("Authorization")}
	for _, name := range p.AccountHeaders {
		parts = append(parts, h.Get(name))
	}
	return parts
}

// Fingerprint is what a key names: target, content type, the profile's headers
// and the body, byte for byte.
func (l *Layer) Fingerprint(r *http.Request, body []byte) Digest {
	parts := []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type")}
	for _, name := range l.Profile.Fingerprint {
		parts = append(parts, r.Header.Get(name))
	}
	parts = append(parts, string(body))
	if l.Bug.Print != nil {
		parts = l.Bug.Print(r, parts)
	}
	return DigestOf(parts...)
}

// Scope is the key together with whose it is.
func (l *Layer) Scope(x *Exchange) Digest {
	parts := append(principal(l.Profile, x.Request.Header), x.Key.Key)
	if l.Bug.Scope != nil {
		parts = l.Bug.Scope(x, parts)
	}
	return DigestOf(parts...)
}
