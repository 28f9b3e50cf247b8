package bolt

import (
	"encoding/binary"
	"math"
)

// sequentialReader reads the entries of a bucket by Seq. Going on to a neighbour costs no
// search.
type sequentialReader struct {
	c cursor
	// The cursor is at the entry at, and there is none in between from here
	// on. At the end, at is the largest of all.
	placed   bool
	from, at uint64
	value    []byte
}

// get returns the entry of the record with the number seq; nil if there is none. It is quick for ascending numbers: the cursor stays at the entry with the
// number t.at, and there is none from t.from up to it. The result points into the file, and is valid until the next call. Error: that of the cursor.
func (t *sequentialReader) get(seq uint64) ([]byte, error) {
	// The next entry is likely the wanted one.
	if t.placed && seq > t.at {
		from := t.at + 1
		k, v, err := t.c.next()
		if t.place(from, k, v, err); err != nil {
			return nil, err
		}
	}
	if !t.placed || seq < t.from || seq > t.at {
		key := seqKey(seq)
		k, v, err := t.c.seek(key[:])
		if t.place(seq, k, v, err); err != nil {
			return nil, err
		}
	}
	if seq != t.at {
		return nil, nil
	}
	return t.value, nil
}

// place notes the position of the cursor after a search for from: at an entry, or at the end (then at is the largest number). The next read from there on
// needs no search. After a failed search there is no position (placed is false).
func (t *sequentialReader) place(from uint64, key, value []byte, err error) {
	t.placed, t.from, t.at, t.value = err == nil, from, math.MaxUint64, value
	if key != nil {
		t.at = binary.BigEndian.Uint64(key)
	}
}
