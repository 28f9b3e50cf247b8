package bolt

import (
	"bytes"
	"encoding/binary"
)

// The versions of what the file holds. Open refuses any other. Version 2 has records
// with kept fields or a server's token, which code that knows version 1 only cannot read.
// A file is created with version 1, and the commit that brings the first of them sets
// version 2: it is in the tree of that commit, so that older code refuses the file as soon as it cannot
// read it, and never takes that commit for one that was cut off.
const (
	formatVersion = "1"
	formatKept    = "2"
)

// idSize is the length of a journal's id, random bytes that creation chooses.
const idSize = 16

// names are the names of the buckets, and of the entries beside and in them. The
// file holds
//
//	oncehttp/format   formatVersion or formatKept
//	oncehttp/id       the journal's id
//	intents/SEQ       what Begin freezes of a record, see entry.go
//	progress/SEQ      what changes of it, once it has changed
//	bodies/SEQ PART N pieces of large bodies
//	state             a proof over all of this, see the type state
type names struct {
	about, intents, progress, bodies []byte // buckets
	state                            []byte // beside the buckets
	format, id                       []byte // in about
}

// newNames are the names. They are bytes, since bbolt takes those.
func newNames() names {
	return names{
		about: []byte("oncehttp"), intents: []byte("intents"), progress: []byte("progress"), bodies: []byte("bodies"),
		state: []byte("state"), format: []byte("format"), id: []byte("id"),
	}
}

// state is the entry that every commit rewrites. It proves that all pages of the
// commit are there: with one page missing, the digests are others.
type state struct {
	txid    uint64 // of the commit
	digest  uint64 // of the records, see slots.go
	bodies  uint64 // of what is in the bucket of bodies
	records uint64 // how many there are
	lastSeq uint64 // the last Seq that was given
	attempt uint64 // which attempt at this txid; 0: the first, see attempt.go
}

const stateSize = 56

// append appends the entry, which ends with a checksum of its own.
func (s state) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, s.txid)
	b = binary.BigEndian.AppendUint64(b, s.digest)
	b = binary.BigEndian.AppendUint64(b, s.bodies)
	b = binary.BigEndian.AppendUint64(b, s.records)
	b = binary.BigEndian.AppendUint64(b, s.lastSeq)
	b = binary.BigEndian.AppendUint64(b, s.attempt)
	return binary.BigEndian.AppendUint64(b, mix(s.txid^mix(s.digest^mix(s.bodies^mix(s.records^mix(s.lastSeq^mix(s.attempt)))))))
}

// decodeState is the inverse of append. ok is false for anything else.
func decodeState(b []byte) (s state, ok bool) {
	if len(b) != stateSize {
		return state{}, false
	}
	n := binary.BigEndian
	s = state{n.Uint64(b), n.Uint64(b[8:]), n.Uint64(b[16:]), n.Uint64(b[24:]), n.Uint64(b[32:]), n.Uint64(b[40:])}
	return s, bytes.Equal(s.append(nil), b)
}
