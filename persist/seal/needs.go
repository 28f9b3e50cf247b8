package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"github.com/oncehttp/oncehttp/persist"
)

// What a record needs decides who claims it, so that it must stand beside it unopened, and equal needs must look alike. Of a sealed record the
// ids of its keys are in clear: that with which it was begun, and that of the last write. The rest is encrypted with the latter, always in
// the same way: the vector is a MAC of the text (as in RFC 5297). So whoever has no key learns which records need the same, and nothing of what.

// needsSizes are how long the two keys for needs are, and the vector.
const (
	needsKeySize = 32
	needsVector  = aes.BlockSize
)

// needsKeys derives the keys for needs: that of the MAC, and that of the cipher.
func (k *key) needsKeys() (both []byte, err error) {
	return hkdf.Expand(sha256.New, k.root, "needs", 2*needsKeySize)
}

// hide encrypts the text of needs.
func (k *key) hide(text string) string {
	vector := mac(k.needs[:needsKeySize], []byte(text))[:needsVector]
	return base64.RawURLEncoding.EncodeToString(append(vector, k.needsStream(vector, []byte(text))...))
}

// reveal decrypts what hide has made. ok is false where this key has not made it.
func (k *key) reveal(hidden string) (text string, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(hidden)
	if err != nil || len(b) < needsVector {
		return "", false
	}
	plain := k.needsStream(b[:needsVector], b[needsVector:])
	return string(plain), hmac.Equal(mac(k.needs[:needsKeySize], plain)[:needsVector], b[:needsVector])
}

// needsStream encrypts or decrypts.
func (k *key) needsStream(vector, in []byte) []byte {
	block, err := aes.NewCipher(k.needs[needsKeySize:])
	if err != nil {
		panic(err) // the size is right
	}
	out := make([]byte, len(in))
	cipher.NewCTR(block, vector).XORKeyStream(out, in)
	return out
}

// sealedNeeds is the text of needs for a record that was begun with one key and is written with another.
func sealedNeeds(n persist.Needs, begun, writes *key) string {
	ids := begun.id
	if writes != begun {
		ids += "+" + writes.id
	}
	return n.Lock(ids, writes.hide(n.String())).String()
}

// needsAbove is a text of the journal below as this one tells it: opened, where all keys are there; marked, where it is of a record that
// is not sealed and should be; else as it is.
func (s *Sealer) needsAbove(text string) string {
	n := persist.ParseNeeds(text)
	switch {
	case n.Format != persist.Format || n.SealKeys == "" && s.plain:
		return text
	case n.SealKeys == "":
		n.Plain = true
		return n.String()
	}
	var last *key
	for _, id := range n.SealKeyIDs() {
		if last = s.find(id); last == nil {
			return text
		}
	}
	inside, ok := last.reveal(n.Hidden)
	if !ok {
		return text
	}
	opened := persist.ParseNeeds(inside)
	if opened.Format != persist.Format {
		return inside // of a later version
	}
	opened.SealKeys = n.SealKeys
	return opened.String()
}

// needsBelow undoes needsAbove. What that has not made stays as it is. A text without keys, as the needs of a record that was unsealed have,
// stands for the same under any of the keys.
func (s *Sealer) needsBelow(text string) (all []string) {
	n := persist.ParseNeeds(text)
	if n.Plain {
		n.Plain = false
		return []string{n.String()}
	}
	if n.Format != persist.Format || n.Hidden != "" {
		return []string{text}
	}
	if ids := n.SealKeyIDs(); len(ids) > 0 {
		first, last := s.find(ids[0]), s.find(ids[len(ids)-1])
		if first == nil || last == nil {
			return []string{text}
		}
		n.SealKeys = ""
		return []string{sealedNeeds(n, first, last)}
	}
	if s.plain {
		all = append(all, text)
	}
	for _, begun := range s.keys {
		for _, writes := range s.keys {
			all = append(all, sealedNeeds(n, begun, writes))
		}
	}
	return all
}
