package bolt

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// index finds Seqs by the hash of a fingerprint; any number of records may share it. It holds no
// fingerprints; a caller finding a Seq reads the record and compares. Not safe for concurrent use.
type index struct {
	first map[uint64]uint64
	more  map[uint64][]uint64 // the second and later Seqs of one hash
}

// newIndex returns an empty index.
func newIndex() *index { return &index{first: map[uint64]uint64{}, more: map[uint64][]uint64{}} }

// add enters a record's number (Seq) under a hash. It must not be there yet. The first number of a hash needs no slice: hashes with several are rare.
func (x *index) add(hash, seq uint64) {
	if _, taken := x.first[hash]; taken {
		x.more[hash] = append(x.more[hash], seq)
		return
	}
	x.first[hash] = seq
}

// remove removes a record's number (Seq) from the numbers with this hash. If it was the first of several, the next one becomes the first. An unknown
// number changes nothing.
func (x *index) remove(hash, seq uint64) {
	more := x.more[hash]
	if x.first[hash] == seq {
		if len(more) == 0 {
			delete(x.first, hash)
			return
		}
		x.first[hash] = more[0]
		seq = more[0]
	}
	if i := slices.Index(more, seq); i >= 0 {
		more = slices.Delete(more, i, i+1)
		x.more[hash] = more
	}
	if len(more) == 0 {
		delete(x.more, hash)
	}
}

// find returns a record's number (Seq) under a hash, but none of known; 0 if there is no other. If that record is not the wanted one, the caller adds its
// number to known and asks again.
func (x *index) find(hash uint64, known []uint64) uint64 {
	seq, ok := x.first[hash]
	if !ok || !slices.Contains(known, seq) {
		return seq
	}
	for _, seq := range x.more[hash] {
		if !slices.Contains(known, seq) {
			return seq
		}
	}
	return 0
}

// has reports whether any record has this hash of its key. Two keys may have one hash, so the record must still be compared.
func (x *index) has(hash uint64) bool {
	_, ok := x.first[hash]
	return ok
}

// all returns the numbers (Seqs) of all records under a hash, ascending; nil if there is none. The slice is the caller's own.
func (x *index) all(hash uint64) []uint64 {
	seq, ok := x.first[hash]
	if !ok {
		return nil
	}
	list := append([]uint64{seq}, x.more[hash]...)
	slices.Sort(list)
	return list
}

// hasher hashes identities with a seed of its own, so no caller can choose colliding keys.
type hasher struct {
	seed maphash.Seed
	mask uint64 // tests clear bits, to make hashes collide
}

// newHasher returns a hasher for IDs and fingerprints, with a random seed. mask has the bits of a hash that are kept; zero keeps every bit. Tests clear
// bits, so that several records get one hash.
func newHasher(mask uint64) hasher {
	if mask == 0 {
		mask = ^uint64(0)
	}
	return hasher{seed: maphash.MakeSeed(), mask: mask}
}

// recordKeys holds the hashes for finding a record in memory.
type recordKeys struct {
	id          uint64 // hash of account and key
	fingerprint uint64 // hash of the fingerprint
	check       uint32 // hash of the unchangeable fields, in the place of slotIdentity
	group       uint64 // hash of account and origin, as Begin has frozen them; never zero
}

// id returns the hash of a record's ID, under which the index in memory has it.
func (h hasher) id(account, key string) uint64 {
	return mix(maphash.String(h.seed, account)^mix(maphash.String(h.seed, key))) & h.mask
}

// fingerprint returns the hash of a request's fingerprint. Under it the records are indexed in memory whose end a caller without a key may still have to
// hear (the unresolved ones).
func (h hasher) fingerprint(f []byte) uint64 { return maphash.Bytes(h.seed, f) & h.mask }

// keys returns the hashes under which a record is indexed in memory.
func (h hasher) keys(r *persist.Record) recordKeys {
	return h.join(maphash.String(h.seed, r.Account), maphash.String(h.seed, r.Key), maphash.Bytes(h.seed, r.Fingerprint), maphash.String(h.seed, r.Origin), r.Created)
}

// intentKeys returns the hashes of a record for the indexes in memory. It takes them from the intent alone, the part frozen by Begin, before the whole
// record is decoded.
func (h hasher) intentKeys(i *codec.Intent) recordKeys {
	return h.join(maphash.Bytes(h.seed, i.Account), maphash.Bytes(h.seed, i.Key), maphash.Bytes(h.seed, i.Fingerprint), maphash.Bytes(h.seed, i.Origin), i.Created)
}

// join makes the hashes of a record out of those of its parts: that of its ID, of its fingerprint and of its group (account and origin), and a check
// of the fields that never change. All but the group and the check are cut by the mask of tests. A group is never zero.
func (h hasher) join(account, key, fingerprint, origin uint64, created time.Time) recordKeys {
	id := mix(account ^ mix(key))
	group := mix(account^mix(^origin)) | 1
	at := uint64(created.Unix())*1e9 + uint64(created.Nanosecond())
	check := uint32(mix(id^mix(fingerprint^mix(at)))) & slotIdentity
	return recordKeys{id: id & h.mask, fingerprint: fingerprint & h.mask, check: check, group: group}
}
