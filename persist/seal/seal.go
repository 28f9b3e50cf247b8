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

// idMax is how long the id of a key may be.
const idMax = 32

// Key is a secret with the name that sealed records call it by.
type Key struct {
	// ID is 1 to 32 letters, digits, '.', '_' and '-'. It is in clear in the journal. Never use one again for another
	// secret.
	ID string
	// Secret is 32 random bytes.
	Secret []byte
}

// Config says how to seal.
type Config struct {
	_ struct{}

	// Keys are the keys, the current one first: it seals, all of them unseal. At least one.
	Keys []Key
	// HashKey, if set, puts an HMAC-SHA256 in the place of each business key: 32 random bytes. The same for as long as
	// the journal lives: with another one, keys that were used are not found. Nil: business keys are in clear.
	HashKey []byte
	// AcceptPlain reads records that are not sealed, too, for a journal that was begun without keys. Those stay in clear with
	// all that happens to them; new ones are sealed. Not together with HashKey. While it is set, whoever can write to the
	// journal can put requests of their own into it.
	AcceptPlain bool
}

// Sealer seals and unseals records. [New] makes one. It is safe for concurrent use.
type Sealer struct {
	keys    []*key
	hashKey []byte
	plain   bool
}

// key is what is derived of a Key.
type key struct {
	id          string
	root        []byte // of the keys of records
	fingerprint []byte // of the HMAC in the place of a fingerprint
	check       []byte // tells another secret under the same id
	needs       []byte // hides what a record needs: two keys
}

// checkSize is how many bytes tell another secret: 1 of 4 billion is not told.
const checkSize = 4

// New makes a sealer. It keeps none of the caller's slices.
// Errors name what is wrong with which key, and no secret.
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

// validID reports whether a key may have this id.
func validID(id string) bool {
	return id != "" && len(id) <= idMax && !strings.ContainsFunc(id, func(r rune) bool {
		known := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' || r == '_' || r == '-'
		return !known
	})
}

func (k Key) valid() error {
	switch {
	case !validID(k.ID):
		return fmt.Errorf("the id of a key is 1 to %d letters, digits, '.', '_' and '-'", idMax)
	case len(k.Secret) != SecretSize:
		return fmt.Errorf("key %q: a secret of %d bytes, want %d", k.ID, len(k.Secret), SecretSize)
	}
	return nil
}

// derive makes the keys for each purpose by HKDF (RFC 5869). One secret under two ids is two keys: a listing that asks for
// what each of them stands for must not find a record twice.
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
	made.needs, err = made.needsKeys()
	return made, err
}

// find is the key with an id, or nil.
func (s *Sealer) find(id string) *key {
	for _, k := range s.keys {
		if k.id == id {
			return k
		}
	}
	return nil
}

// index is what stands for a fingerprint in records that k has sealed.
func (k *key) index(fingerprint []byte) []byte { return mac(k.fingerprint, fingerprint) }

// indexes are what may stand for a fingerprint, that of new records first.
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

// stored is the business key as the journal has it. The empty key, which a query may have, stays empty.
func (s *Sealer) stored(key string) string {
	if s.hashKey == nil || key == "" {
		return key
	}
	return base64.RawURLEncoding.EncodeToString(mac(s.hashKey, []byte(key)))
}

// storedID is the ID as the journal has it.
func (s *Sealer) storedID(id persist.ID) persist.ID {
	id.Key = s.stored(id.Key)
	return id
}

func mac(key, message []byte) []byte {
	m := hmac.New(sha256.New, key)
	_, _ = m.Write(message) // never fails
	return m.Sum(nil)
}
