package bolt

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// Facts lie in the bucket about the file. bbolt keeps it in the root page as long as it is small: a quarter
// of a page at most. The root page is written with every commit anyway. The hash of all facts is part of
// the state proving the commit.

const (
	factPrefix    = "fact "
	factsBytesMax = 640 // of all facts, with their names and bbolt's own bytes for each
	factBytes     = 32  // the bytes of an entry beside its value and its name
)

// fact is a fact written by a commit.
type fact struct {
	name  string
	value []byte
}

// facts are the facts of a file, by their names.
type facts map[string][]byte

// sum returns a hash of all facts, the named values of the journal as a whole.
func (f facts) sum() (sum uint64) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		sum = mix(sum ^ uint64(codec.Checksum([]byte(name)))<<32 ^ uint64(codec.Checksum(f[name])))
	}
	return sum
}

// with returns a copy of the facts (named values of the journal as a whole) with one more written. f itself may be in use by readers, and stays as it
// is.
func (f facts) with(written *fact) facts {
	next := maps.Clone(f)
	if next == nil {
		next = facts{}
	}
	next[written.name] = written.value
	return next
}

// bytes returns about the number of bytes that the facts, the named values of the journal as a whole, take in the file.
func (f facts) bytes() (n int) {
	for name, value := range f {
		n += factBytes + len(name) + len(value)
	}
	return n
}

// put writes a fact, a named value of the journal as a whole, into the bucket about the file. about is the name of this bucket.
func (f *fact) put(tx *bbolt.Tx, about []byte) error {
	return tx.Bucket(about).Put([]byte(factPrefix+f.name), appendSum(bytes.Clone(f.value)))
}

// readFact reads an entry of the bucket about the file into f, if it is a fact, a named value of the journal as a whole. Any other entry is passed over.
// Error: persist.ErrCorrupt for a wrong checksum.
func (f facts) readFact(key, value []byte) error {
	name, is := strings.CutPrefix(string(key), factPrefix)
	if !is {
		return nil
	}
	n := len(value) - sumSize
	if n < 1 || !bytes.Equal(appendSum(bytes.Clone(value[:n])), value) {
		return fmt.Errorf("%w: its fact %q", persist.ErrCorrupt, name)
	}
	f[name] = bytes.Clone(value[:n])
	return nil
}

// Fact implements [persist.Journal]. It returns the value of a named fact (a small value of the journal as a whole), nil if there is none. If value is not nil
// and the present value is old, it writes value first. Writing calls follow one after the other. Error: also persist.ErrInvalid if all facts together would be
// too long.
func (j *Journal) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	if err := cmp.Or(persist.CheckFact(name, value), j.start(ctx)); err != nil {
		return nil, err
	}
	if value != nil {
		if err := j.startWrite(ctx); err != nil {
			return nil, err
		}
		j.factsMu.Lock()
		defer j.factsMu.Unlock()
	}
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return nil, err
	}
	if standing := j.facts[name]; value == nil || !bytes.Equal(standing, old) || bytes.Equal(standing, value) { // nothing to write
		j.mu.Unlock()
		return bytes.Clone(standing), nil
	}
	written := &fact{name, bytes.Clone(value)}
	if n := j.facts.with(written).bytes(); n > factsBytesMax {
		j.mu.Unlock()
		return nil, fmt.Errorf("persist/bolt: %s: %w: all facts together are too long", j.path, persist.ErrInvalid)
	}
	// factsMu is held until the commit is over: no other fact can be in this batch.
	j.collecting.fact = written
	if err := j.unlockAndAwait(j.collecting); err != nil {
		return nil, err
	}
	return bytes.Clone(value), nil
}
