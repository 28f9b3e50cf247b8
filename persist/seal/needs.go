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

// A record's needs decide about its claimer. So they must stand beside it unopened, and equal needs must look alike.
// The ids of a sealed record's keys are in clear: the key of its Begin, and the key of its last write. The rest is
// encrypted with the latter, always in the same way: the vector is a MAC of the text (as in RFC 5297). So a reader
// without a key learns the groups of records with equal needs, and nothing of the needs themselves.

// needsSizes are the lengths of each of the two keys for needs, and of the vector.
const (
	needsKeySize = 32
	needsVector  = aes.BlockSize
)

// needsKeys derives the keys for the needs of records (the requirements on a client that acts on them): that of the MAC, then that of the cipher.
func (k *key) needsKeys() (both []byte, err error) {
	return hkdf.Expand(sha256.New, k.root, "needs", 2*needsKeySize)
}

// hide encrypts the text of a record's needs, the requirements on its clients. The start value of the encryption is a MAC of the text, and stands before the
// result: so equal texts give equal results, and needs can be compared.
func (k *key) hide(text string) string {
	vector := mac(k.needs[:needsKeySize], []byte(text))[:needsVector]
	return base64.RawURLEncoding.EncodeToString(append(vector, k.needsStream(vector, []byte(text))...))
}

// reveal decrypts the text of needs (the requirements on a client) that hide has encrypted. ok is false if another key has encrypted it, or if it was
// changed.
func (k *key) reveal(hidden string) (text string, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(hidden)
	if err != nil || len(b) < needsVector {
		return "", false
	}
	plain := k.needsStream(b[:needsVector], b[needsVector:])
	return string(plain), hmac.Equal(mac(k.needs[:needsKeySize], plain)[:needsVector], b[:needsVector])
}

// needsStream encrypts or decrypts the text of needs (the requirements on a client) by AES in counter mode: twice gives the input again. vector is its start
// value.
func (k *key) needsStream(vector, in []byte) []byte {
	block, err := aes.NewCipher(k.needs[needsKeySize:])
	if err != nil {
		panic(err) // the size is right
	}
	out := make([]byte, len(in))
	cipher.NewCTR(block, vector).XORKeyStream(out, in)
	return out
}

// sealedNeeds returns the text of needs (the requirements on a client) that a sealed record shows: in clear only the ids of the keys of its Begin (begun) and
// of this write (writes), once if they are the same, and everything else encrypted.
func sealedNeeds(n persist.Needs, begun, writes *key) string {
	ids := begun.id
	if writes != begun {
		ids += "+" + writes.id
	}
	return n.Lock(ids, writes.hide(n.String())).String()
}

// needsAbove converts a text of needs, which says what a client must have to finish a record, from the journal below. It is decrypted if all keys of the
// record are there, by the key of its last write. The text of a record in clear gets the word plain if all records should be sealed: no client with this
// sealer can finish it. Else it stays as it is.
func (s *Sealer) needsAbove(text string) string {
	n := persist.ParseNeeds(text)
	switch {
	case n.Format != persist.Format || n.SealKeys == "" && s.plain: // of a later version, or a record in clear that is accepted
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

// needsBelow converts a text of needs (the requirements on a client) into the forms that the journal below may have, the opposite of needsAbove. A text with
// the word plain is that of a record in clear. A text without ids of keys, as in a query, stands for the same needs under each key of the seal.
func (s *Sealer) needsBelow(text string) (all []string) {
	n := persist.ParseNeeds(text)
	if n.Plain {
		n.Plain = false
		return []string{n.String()}
	}
	if n.Format != persist.Format || n.Hidden != "" { // of a later version, or encrypted and stored as it is
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
