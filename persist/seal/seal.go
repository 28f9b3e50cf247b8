package seal

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// SecretSize is the length of a secret in bytes: an AES-256 key.
const SecretSize = 32

// idMax is the maximum length of a key's id.
const idMax = 32

// Key is a secret with its name in sealed records.
type Key struct {
	// ID is 1 to 32 letters, digits, '.', '_' and '-'. It is in clear in the journal. Never use one again for another
	// secret.
	ID string
	// Secret is 32 random bytes.
	Secret []byte
}

// Config contains the keys and options of a Sealer.
type Config struct {
	_ struct{}

	// Keys are the keys, the current one first: it seals, all of them unseal. At least one.
	Keys []Key
	// HashKey, if set, puts an HMAC-SHA256 in the place of each business key: 32 random bytes. It must stay the same in
	// the life of the journal: with another one, used keys are not found. Nil: business keys are in clear.
	HashKey []byte
	// AcceptPlain reads unsealed records, too, for a journal begun without keys. Those stay in clear with all their
	// changes; new ones are sealed. Not together with HashKey. While it is set, anybody with write access to the
	// journal can put requests of their own into it.
	AcceptPlain bool
}

// Sealer seals and unseals records. [New] makes one. It is safe for concurrent use.
type Sealer struct {
	keys    []*key
	hashKey []byte
	plain   bool
}

// key holds the secrets derived from a Key.
type key struct {
	id          string
	root        []byte // of the keys of records
	fingerprint []byte // of the HMAC in the place of a fingerprint
	check       []byte // tells another secret under the same id
	needs       []byte // hides a record's needs: two keys
	end         []byte // seals what is left of a record without its text: two keys
}

// checkSize is the length of check in bytes: it misses 1 of 4 billion other secrets.
const checkSize = 4

// New returns a sealer, which encrypts and decrypts records with these keys. It keeps none of the caller's slices. Errors name the fault and its key,
// and no secret.
func New(c Config) (*Sealer, error) {
	s := &Sealer{hashKey: slices.Clone(c.HashKey), plain: c.AcceptPlain}
	switch {
	case len(c.Keys) == 0:
		return nil, errors.New("persist/seal: no key")
	case c.HashKey != nil && len(c.HashKey) != SecretSize:
		return nil, fmt.Errorf("persist/seal: HashKey of %d bytes, want %d", len(c.HashKey), SecretSize)
	case c.HashKey != nil && c.AcceptPlain:
		return nil, errors.New("persist/seal: HashKey and AcceptPlain exclude each other: a key in clear would not be found by its hash")
	}
	for _, given := range c.Keys {
		if err := given.valid(); err != nil {
			return nil, fmt.Errorf("persist/seal: %w", err)
		}
		if s.find(given.ID) != nil {
			return nil, fmt.Errorf("persist/seal: two keys %q", given.ID)
		}
		k, err := given.derive()
		if err != nil {
			return nil, fmt.Errorf("persist/seal: key %q: %w", given.ID, err)
		}
		s.keys = append(s.keys, k)
	}
	return s, nil
}

// validID reports whether an id can name a key: up to idMax letters, digits and the signs '.', '_' and '-'.
func validID(id string) bool {
	return id != "" && len(id) <= idMax && !strings.ContainsFunc(id, func(r rune) bool {
		known := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' || r == '_' || r == '-'
		return !known
	})
}

// valid returns an error if the key has an invalid id, or a secret of a wrong length.
func (k Key) valid() error {
	switch {
	case !validID(k.ID):
		return fmt.Errorf("the id of a key is 1 to %d letters, digits, '.', '_' and '-'", idMax)
	case len(k.Secret) != SecretSize:
		return fmt.Errorf("key %q: a secret of %d bytes, want %d", k.ID, len(k.Secret), SecretSize)
	}
	return nil
}

// derive derives the keys for each purpose by HKDF (RFC 5869). fingerprint is for digests of requests, check tells two keys of one id apart, needs and end
// encrypt texts of their own. One secret with two ids gives two different keys: a listing asks for the values of each key, and must not find a record twice.
func (k Key) derive() (*key, error) {
	root, err := hkdf.Extract(sha256.New, k.Secret, []byte("oncehttp seal v1 "+k.ID))
	if err != nil {
		return nil, err
	}
	fingerprint, err := hkdf.Expand(sha256.New, root, "fingerprint", sha256.Size)
	if err != nil {
		return nil, err
	}
	check, err := hkdf.Expand(sha256.New, root, "check", checkSize)
	if err != nil {
		return nil, err
	}
	made := &key{id: k.ID, root: root, fingerprint: fingerprint, check: check}
	if made.needs, err = made.needsKeys(); err == nil {
		made.end, err = made.endKeys()
	}
	return made, err
}

// find returns the key with an id, or nil.
func (s *Sealer) find(id string) *key {
	for _, k := range s.keys {
		if k.id == id {
			return k
		}
	}
	return nil
}

// index returns the keyed digest that stands in place of a request's fingerprint in records sealed by k: equal requests can be found by it, and it
// tells nothing of the request.
func (k *key) index(fingerprint []byte) []byte { return mac(k.fingerprint, fingerprint) }

// indexes returns all values under which a record with this fingerprint may be found: one for each key, the value of new records first. Records in clear, if
// the sealer accepts them (plain), have the fingerprint itself.
func (s *Sealer) indexes(fingerprint []byte) [][]byte {
	list := make([][]byte, 0, len(s.keys)+1)
	for _, k := range s.keys {
		list = append(list, k.index(fingerprint))
	}
	if s.plain {
		list = append(list, fingerprint)
	}
	return list
}

// stored returns the caller's idempotency key as the journal below has it: hashed if there is a HashKey. The empty key, as in a query for all, stays
// empty.
func (s *Sealer) stored(key string) string {
	if s.hashKey == nil || key == "" {
		return key
	}
	return base64.RawURLEncoding.EncodeToString(mac(s.hashKey, []byte(key)))
}

// StoredID returns the ID of a record in the form of the journal below: its key is hashed if there is a HashKey. MarkDelivered of persist/postgres and
// persist/mysql takes it; without a HashKey, or a Sealer, it is the ID itself.
func (s *Sealer) StoredID(id persist.ID) persist.ID {
	if s != nil {
		id.Key = s.stored(id.Key)
	}
	return id
}

// mac returns the HMAC-SHA256 of a message.
func mac(key, message []byte) []byte {
	m := hmac.New(sha256.New, key)
	_, _ = m.Write(message) // never fails
	return m.Sum(nil)
}
