package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// field names a sealed part of a record. The values are in the associated data.
type field string

const (
	fieldIdentity field = "identity" // frozen by Begin and kept by a tombstone
	fieldHead     field = "head"     // headers of the request, its trace, and the names of what was left out of it; a sweep drops them
	fieldRequest  field = "request"  // its body; a sweep or its end drops it
	fieldAnswer   field = "answer"
	fieldHistory  field = "history"
	fieldEvidence field = "evidence"
	fieldNote     field = "note"
	fieldToken    field = "token"
	fieldReplaces field = "replaces"

	fieldReplacedBy field = "replaced by"
	fieldRun        field = "run"
	fieldStanding   field = "standing" // see standing.go

	fieldCredential field = "credential"
	fieldRegion     field = "region"
)

// A sealed part is
//
//	formatVersion, length of the key's id, id, check (4 bytes), nonce (12), ciphertext, tag (16)
const formatVersion = 2

// box seals and opens the parts of one record under one key.
type box struct {
	key  *key
	aead cipher.AEAD
	data []byte // associated data, without the field
}

// newBox returns a box for a record: it encrypts and decrypts the parts of this record alone, by a key derived for it. id is in the form of the journal below.
// created (the record's time of begin) tells two records of one ID apart if the first was forgotten.
func (k *key) newBox(id persist.ID, created time.Time) (*box, error) {
	data := make([]byte, 0, 64+len(id.Account)+len(id.Key))
	for _, s := range [...]string{id.Account, id.Key} {
		data = append(binary.AppendUvarint(data, uint64(len(s))), s...)
	}
	data = binary.AppendVarint(data, created.Unix())
	data = binary.AppendUvarint(data, uint64(created.Nanosecond()))
	secret, err := hkdf.Expand(sha256.New, k.root, "record "+string(data), SecretSize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &box{key: k, aead: aead, data: data}, err
}

// seal encrypts one part of the record. The result begins with the format, the id of the key and a check of it (derived from the key, to tell another key with
// the same id), in clear. It can only be decrypted as this field of this record.
func (b *box) seal(f field, plain []byte) []byte {
	part := make([]byte, 0, 2+len(b.key.id)+checkSize+b.aead.Overhead()+len(plain))
	part = append(part, formatVersion, byte(len(b.key.id)))
	part = append(append(part, b.key.id...), b.key.check...)
	return b.aead.Seal(part, nil, plain, b.associated(f))
}

// associated returns the data authenticated beside the ciphertext: the record and the field.
func (b *box) associated(f field) []byte {
	return append(append(make([]byte, 0, len(b.data)+len(f)), b.data...), f...)
}

// opener opens the parts of one record.
type opener struct {
	s       *Sealer
	id      persist.ID // in the form of the journal
	created time.Time
	box     *box // of the key named by the last part; nil before
}

// open returns the plaintext of a part. Errors: persist.ErrSealed if the key is not there, or another one with this id (the check differs); persist.ErrCorrupt
// if the part was changed, cut off, or is one of another record or field.
func (o *opener) open(f field, part []byte) ([]byte, error) {
	id, check, rest, ok := split(part)
	switch {
	case len(part) > 0 && part[0] == 1: // of a development version, whose records had no standing
		return nil, fmt.Errorf("%w: account %q, key %q: it was sealed by an earlier version of this module, which this one does not read", persist.ErrCorrupt, o.id.Account, o.id.Key)
	case !ok:
		return nil, o.corrupt(f)
	}
	k := o.s.find(id)
	switch {
	case k == nil:
		return nil, fmt.Errorf("%w: %q is sealed with the key %q, which was not given; give it behind the current one", persist.ErrSealed, o.id.Key, id)
	case !bytes.Equal(check, k.check):
		return nil, fmt.Errorf("%w: %q is sealed with another key %q than the one that was given; give the secret that had this id then", persist.ErrSealed, o.id.Key, id)
	}
	if o.box == nil || o.box.key != k { // parts of one record can have different keys
		b, err := k.newBox(o.id, o.created)
		if err != nil {
			return nil, fmt.Errorf("persist/seal: key %q: %w", id, err)
		}
		o.box = b
	}
	plain, err := o.box.aead.Open(nil, nil, rest, o.box.associated(f))
	if err != nil {
		return nil, o.corrupt(f)
	}
	return plain, nil
}

// split takes an encrypted part apart: the id of its key, the check of that key, and the encrypted rest. ok is false if it is no such part.
func split(part []byte) (id string, check, rest []byte, ok bool) {
	if len(part) < 2 || part[0] != formatVersion || len(part) < 2+int(part[1])+checkSize {
		return "", nil, nil, false
	}
	n := 2 + int(part[1])
	id = string(part[2:n])
	return id, part[n : n+checkSize], part[n+checkSize:], validID(id)
}

// corrupt returns the error for a field that was changed without the keys: persist.ErrCorrupt.
func (o *opener) corrupt(f field) error {
	return fmt.Errorf("%w: account %q, key %q: its %s was changed, cut off, or put there from elsewhere", persist.ErrCorrupt, o.id.Account, o.id.Key, f)
}
