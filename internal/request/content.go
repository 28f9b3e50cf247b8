package request

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the digest of a request. Every version makes it alike. So each version can tell another request from a
// record's request, whatever the record's recipe.

// ContentKey is the key of Content, made of the journal's secret. It is safe for concurrent use.
type ContentKey struct {
	inner, outer []byte
	id           string
}

// NewContentKey returns the key by which Content makes its digests, derived from the journal's secret: without that secret nobody can try requests against a digest.
func NewContentKey(secret []byte) *ContentKey {
	id := mac(secret, "content's key")
	return &ContentKey{mac(secret, "content"), mac(secret, "content's digest"), hex.EncodeToString(id[:4]) + ":"}
}

// Content returns the value of Record.Content: a keyed digest of method, origin, path and body, each but the last behind its length. All versions must make
// it alike, so its making never changes. As in HMAC, one hash with an inner key is hashed again with an outer key. k.id names the key, at the start of the
// text.
func (k *ContentKey) Content(rec *persist.Record) string {
	var buffer [512]byte
	head := append(buffer[:0], k.inner...)
	for _, text := range [...]string{rec.Method, rec.Origin, Path(rec.Target)} {
		head = appendSized(head, text)
	}
	h := sha256.New()
	h.Write(head)
	h.Write(rec.Body)
	outer := sha256.Sum256(h.Sum(append(buffer[:0], k.outer...)))
	return string(hex.AppendEncode(append(buffer[:0], k.id...), outer[:]))
}

// otherContent reports whether two records are of other requests for certain. Digests with different keys are not compared.
func otherContent(a, b *persist.Record) bool {
	const key = 9 // the id of the digest's key: 8 digits and a colon
	return len(a.Content) > key && len(b.Content) > key && a.Content[:key] == b.Content[:key] && a.Content != b.Content
}
