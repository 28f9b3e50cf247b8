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
	for _, name := range p.AccountHeaders {
		parts = append(parts, h.Get(name))
	}
	return parts
}

// requestDigest is what the watch holds a client to: target and bytes. A content
// type that changes is a change of the bytes' meaning.
func requestDigest(r *http.Request, body []byte) digest {
	return digestOf(r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"), string(body))
}

// fingerprint is what a key names: target, content type, the profile's headers
// and the body, byte for byte.
func (s *Server) fingerprint(r *http.Request, body []byte) digest {
	parts := []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type")}
	for _, name := range s.cfg.Profile.Fingerprint {
		parts = append(parts, r.Header.Get(name))
	}
	parts = append(parts, string(body))
	if s.bug.print != nil {
		parts = s.bug.print(r, parts)
	}
	return digestOf(parts...)
}

// scope is the key together with whose it is.
func (s *Server) scope(x *exchange) digest {
	parts := append(principal(s.cfg.Profile, x.r.Header), x.key.key)
	if s.bug.scope != nil {
		parts = s.bug.scope(x, parts)
	}
	return digestOf(parts...)
}
