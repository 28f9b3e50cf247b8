package bolt

import (
	"bytes"
	"encoding/binary"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// formatVersion is the version of the file's contents. Open refuses any other. Programs from before the first release
// wrote numbers without a v.
const formatVersion = "v3"

// idSize is the length of a journal's id, random bytes chosen at creation.
const idSize = 16

// names are the names of the buckets, and of the entries beside and in them. The
// file holds
//
//	oncehttp/format   formatVersion
//	oncehttp/id       the journal's id
//	oncehttp/secret   the journal's secret and its checksum
//	oncehttp/fact N   the fact named N and its checksum
//	intents/SEQ       the part of a record frozen by Begin, see entry.go, or a used key, see used.go
//	progress/SEQ      the changing part, once it has changed
//	bodies/SEQ PART N pieces of large bodies
//	state             a proof over all of this, see the type state
type names struct {
	about, intents, progress, bodies []byte // buckets
	state                            []byte // beside the buckets
	format, id, secret               []byte // in about
}

// newNames returns the names of the journal's buckets and special entries in the bbolt file. intents has records as they were begun, progress their changed
// parts, bodies the long bodies, and about the data about the file: format, id and secret. They are bytes, since bbolt takes those.
func newNames() names {
	return names{
		about: []byte("oncehttp"), intents: []byte("intents"), progress: []byte("progress"), bodies: []byte("bodies"),
		state: []byte("state"), format: []byte("format"), id: []byte("id"), secret: []byte("secret"),
	}
}

// state is the entry rewritten by every commit. It proves the presence of all pages of the commit: with one
// page missing, the digests are others.
type state struct {
	txid    uint64 // of the commit
	digest  uint64 // of the records, see slots.go
	bodies  uint64 // of the bucket of bodies
	records uint64 // how many there are
	lastSeq uint64 // the last Seq given
}

const stateSize = 48

// aboutSum returns a hash of the file's data about itself: its format, and the journal's id, secret and facts.
func aboutSum(id [idSize]byte, secret [persist.SecretSize]byte, f facts) uint64 {
	n := binary.BigEndian
	return mix(f.sum() ^ mix(mix(n.Uint64(id[:]))^mix(n.Uint64(id[8:]))^uint64(codec.Checksum([]byte(formatVersion)))<<32^uint64(codec.Checksum(secret[:]))))
}

// append appends the entry of the commit's state to b: its number, the digests of records and bodies, the number of records and the last Seq. It ends
// with a checksum that also covers the entries about the file (about), so that the state of another file is not taken for this one's.
func (s state) append(b []byte, about uint64) []byte {
	b = binary.BigEndian.AppendUint64(b, s.txid)
	b = binary.BigEndian.AppendUint64(b, s.digest)
	b = binary.BigEndian.AppendUint64(b, s.bodies)
	b = binary.BigEndian.AppendUint64(b, s.records)
	b = binary.BigEndian.AppendUint64(b, s.lastSeq)
	return binary.BigEndian.AppendUint64(b, mix(s.txid^mix(s.digest^mix(s.bodies^mix(s.records^mix(s.lastSeq^mix(about)))))))
}

// decodeState is the inverse of append. about is the hash of the file's data about itself, as given to append. ok is false if the length or the checksum is
// wrong.
func decodeState(b []byte, about uint64) (s state, ok bool) {
	if len(b) != stateSize {
		return state{}, false
	}
	n := binary.BigEndian
	s = state{n.Uint64(b), n.Uint64(b[8:]), n.Uint64(b[16:]), n.Uint64(b[24:]), n.Uint64(b[32:])}
	return s, bytes.Equal(s.append(nil, about), b)
}
