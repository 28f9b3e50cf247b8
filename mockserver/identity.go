package mockserver

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"

	"github.com/oncehttp/oncehttp/profile"
)

// digest tells two things apart without keeping them.
type digest [sha256.Size]byte

// digestOf hashes the parts so that no two lists of parts are confused.
func digestOf(parts ...string) digest {
	h := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return digest(h.Sum(nil))
}

// principal is whose keys these are: the credential, and what the profile says
// selects an account. Only its digest is kept.
func principal(p *profile.Profile, h http.Header) []string {
	parts := []string{h.Get("Authorization")}
	for _, name := range p.Scoping {
		parts = append(parts, h.Get(name))
	}
	return parts
}

// fingerprint is what a key names: target, content type, the profile's headers
// and the body, byte for byte.
func (s *Server) fingerprint(r *http.Request, body []byte) digest {
	parts := []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type")}
	for _, name := range s.cfg.Profile.Fingerprint {
		parts = append(parts, r.Header.Get(name))
	}
	return digestOf(append(parts, string(body))...)
}
