package seal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the common ground of one journal's users: sealed or not, the HashKey, and, in one process, the keys.

// The values of persist.FactSeal. A sealed journal with a HashKey has a check value of the HashKey behind the word.
const (
	factSealed  = "sealed"
	factSealing = "sealing" // begun in clear, and sealed from some record on
)

// fact returns the text kept in the journal, under the name persist.FactSeal, on how its records are sealed: from the first record (factSealed), with keys
// hashed by this HashKey (a digest of it follows), or from a later one on (factSealing), if the sealer accepts records in clear (s.plain).
func (s *Sealer) fact() []byte {
	switch {
	case s.plain:
		return []byte(factSealing)
	case s.hashKey != nil:
		return []byte(factSealed + " " + hex.EncodeToString(mac(s.hashKey, []byte("oncehttp fact"))[:16]))
	}
	return []byte(factSealed)
}

// checkFact compares the journal's fact on sealing (a text in the journal that says how its records are sealed) with this sealer. It returns persist.ErrSealed
// if the two do not fit. The text is empty in a new journal, which fits every sealer. plain says that this sealer accepts records in clear. factSealed is the
// text of a journal sealed from its first record, factSealing that of one begun in clear, FactPlain that of one with records in clear alone. A sealer without
// plain fits a journal begun in clear, too: its records in clear may have gone since, and each that is left is an error.
func (s *Sealer) checkFact(standing []byte) error {
	text := string(standing)
	switch {
	case text == "" || text == string(s.fact()) || text == factSealed && s.plain || text == factSealing && s.hashKey == nil:
		return nil
	case text == persist.FactPlain && s.plain:
		return nil // the first sealed record changes it
	case text == persist.FactPlain:
		return fmt.Errorf("%w: the journal was begun in clear; to seal it from now on set AcceptPlain, or copy it with oncehttp journal compact --seal-key", persist.ErrSealed)
	case text == factSealing:
		return fmt.Errorf("%w: the journal was begun in clear, and is sealed without a HashKey; leave that out", persist.ErrSealed)
	case text == factSealed:
		return fmt.Errorf("%w: the journal was begun without a HashKey; leave that out", persist.ErrSealed)
	case bytes.HasPrefix(standing, []byte(factSealed+" ")):
		return fmt.Errorf("%w: the journal was begun with another HashKey; give that one", persist.ErrSealed)
	}
	return fmt.Errorf("%w: a newer version of this module says how the journal is sealed; use that", persist.ErrSealed)
}

// holding is the state of hold, one for each value of a journal: done is set once the journal below holds a fact fit
// for the sealer.
type holding struct {
	mu   sync.Mutex
	done bool
}

// hold makes sure, before the first record is begun, that the journal below says in its facts (values of the journal as a whole) how its records are sealed.
// j.holding.done remembers it, so that the fact is read once. Other programs then refuse the journal without the keys. Errors: persist.ErrSealed, and those of
// Fact.
func (j *journal) hold(ctx context.Context) error {
	j.holding.mu.Lock()
	defer j.holding.mu.Unlock()
	if j.holding.done {
		return nil
	}
	// Written only if there is none. One that says that all records are in clear is replaced if this sealer accepts such records.
	standing, err := j.Journal.Fact(ctx, persist.FactSeal, nil, j.s.fact())
	if err == nil && j.s.plain && string(standing) == persist.FactPlain {
		standing, err = j.Journal.Fact(ctx, persist.FactSeal, standing, j.s.fact())
	}
	if err == nil {
		err = j.s.checkFact(standing)
	}
	if err != nil {
		return fmt.Errorf("persist/seal: %w", err)
	}
	j.holding.done = true
	return nil
}

// Fact implements [persist.Journal]: it reads or writes a named value of the journal below. The value on sealing (persist.FactSeal) is another one for users
// above, for whom the records are in clear: FactPlain, or nil before the first record. The first of them to write it makes the journal below hold the sealer's
// own; old does not matter then.
func (j *journal) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	if name != persist.FactSeal {
		return j.Journal.Fact(ctx, name, old, value)
	}
	if value == nil {
		standing, err := j.Journal.Fact(ctx, name, nil, nil)
		if err == nil && standing != nil {
			standing = []byte(persist.FactPlain)
		}
		return standing, err
	}
	if string(value) != persist.FactPlain {
		return nil, fmt.Errorf("persist/seal: %w: %q of a sealed journal is not to be changed", persist.ErrInvalid, name)
	}
	return value, j.hold(ctx)
}

// company is a process's attachment to a journal sealed by it. The process's knowledge of the journal, such as the
// unresolved records, is true only for users able to unseal the same records.
type company struct {
	persist.Attachment
	keys [sha256.Size]byte // of all keys, in their order
}

// Sealed returns persist.ErrSealed: a user of this journal in the process works without its keys, or with other ones.
func (*company) Sealed() error {
	return fmt.Errorf("%w: this process seals the journal; use the one that Sealer.Journal returned", persist.ErrSealed)
}

// errOtherKeys: two users of a journal in one process have different keys.
var errOtherKeys = errors.New("this process has the journal open with other keys, or with these in another order; use one Sealer, or close the journal and open it anew")

// join notes, for this process, that the journal is used with these keys: it attaches a digest of them to the journal, or compares that of an earlier user.
// Error: persist.ErrSealed if the process uses it without keys or with others at the same time.
func (s *Sealer) join(j persist.Journal) (*company, error) {
	sum := sha256.New()
	for _, k := range s.keys {
		fmt.Fprintf(sum, "%s %x ", k.id, k.fingerprint)
	}
	fmt.Fprintf(sum, "%x %t", s.hashKey, s.plain)
	mine := &company{keys: [sha256.Size]byte(sum.Sum(nil))}
	there, sealed := j.Attach(func() any { return mine }).(*company) // another type is that of a user without keys
	switch {
	case !sealed:
		return nil, fmt.Errorf("%w: this process uses the journal without keys; close that first", persist.ErrSealed)
	case there.keys != mine.keys:
		return nil, fmt.Errorf("%w: %w", persist.ErrSealed, errOtherKeys)
	}
	return there, nil
}

// Attach implements [persist.Journal]: it returns the value that all users of this journal with the same keys in this process share. The first call creates
// it.
func (j *journal) Attach(create func() any) any { return j.company.Attach(create) }

// InProcess implements [persist.InProcess]: it reports whether no other process can reach the journal, as the journal below says it; false if that says
// nothing.
func (j *claiming) InProcess() bool {
	alone, is := persist.As[persist.InProcess](j.Journal)
	return is && alone.InProcess()
}
