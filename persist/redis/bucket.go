package redis

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// index is one key of a bucket. Its name is for people who look into the journal.
type index int

// The keys of a bucket, in the order of the scripts' KEYS. The scores of sorted sets are Seq numbers without the
// bucket, or microseconds since 1970. Members are ids of records, except as noted.
const (
	records      index = iota // hash: the parts of the records, and the name of the journal
	clock                     // string: the last number given out
	all                       // by number: every record
	names                     // by member: every record; those of one key are beside each other
	unfinished                // by number: pending and held
	due                       // by the time from which a claim is possible, NextAttempt or the end of a lease: pending
	unresolved                // by number: under generated keys, and unfinished or unreported
	fingerprints              // by member, a fingerprint and an id: the same
	finished                  // by Finished: final, with the answer
	expiring                  // by Record.SweepAt: the same
	tombstones                // by Record.SweepAt: swept, under chosen keys
	unreported                // by Record.SweepAt: swept, under generated keys
	origins                   // by member, see origins.go: pending, by origin and account
	owed                      // by number: with a result owed to OnResult
	counts                    // hash: the number of pending records, and that of held ones by reason, see count.go
	ages                      // by member, Created in the form of instant and an id: pending and held

	indexes
)

// String returns the name of the index as a part of its Redis key.
func (i index) String() string {
	return [indexes]string{
		"records", "clock", "all", "names", "unfinished", "due", "unresolved", "fingerprints", "finished", "expiring", "tombstones", "unreported", "origins", "owed", "counts", "ages",
	}[i]
}

// bucket is the number of a bucket and the names of its keys.
type bucket struct {
	number int
	keys   []string
}

// newBucket returns the bucket of this number. The records of a journal are spread over its buckets; each bucket is a few keys of Redis: a hash with
// records, and indexes. In a cluster the part of a key between the braces decides its node, so all keys of a bucket are on one.
func newBucket(prefix string, number int) *bucket {
	b := &bucket{number: number, keys: make([]string, indexes)}
	for i := range indexes {
		b.keys[i] = fmt.Sprintf("{%s:%d}:%s", prefix, number, i)
	}
	return b
}

// The parts of an id in bytes: of the hash of the key, and of the hash of the account. Two records with one id are
// noticed, see entry.record.
const (
	keyHash     = 20
	accountHash = 12
	idSize      = keyHash + accountHash
)

// idOf returns the name of a record in its bucket: the hash of the key, then a part of the account's hash. So the records of one key lie beside each other, of
// all accounts, and in one bucket.
func idOf(id persist.ID) string {
	account := sha256.Sum256([]byte(id.Account))
	return hashOf(id.Key) + string(account[:accountHash])
}

// hashOf returns the common part of the Redis ids of all records with a key: a prefix of its SHA-256. So the records of one key in several accounts
// are found together.
func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return string(sum[:keyHash])
}

// of returns the bucket of a record by its id (idOf), that is by the hash of its key: all records of one key are in one bucket. A journal that was never
// opened has none, and gets an empty one: its calls fail later.
func (j *Journal) of(id string) *bucket {
	if len(j.buckets) == 0 { // it was never opened; enter says so
		return &bucket{}
	}
	return j.buckets[binary.BigEndian.Uint32([]byte(id))%uint32(len(j.buckets))]
}

// bucketBits are the low bits of a Seq; they name the bucket. Each bucket counts for itself; see listing.bound for the
// common order.
const bucketBits = 8

// seqOf returns the Seq of a record, which is unique in the journal, by its number in this bucket. Buckets are the parts among which Redis shares the records.
// The low bits of a Seq are the number of its bucket.
func (b *bucket) seqOf(number uint64) uint64 { return number<<bucketBits | uint64(b.number) }

// numberOf returns the number of a Seq in this bucket. It returns 0, the number of no record, if the Seq is of another
// bucket.
func (b *bucket) numberOf(seq uint64) uint64 {
	number := seq >> bucketBits
	if b.seqOf(number) != seq {
		return 0
	}
	return number
}

// first returns the lowest record number of this bucket with a Seq greater than after. A Seq is made of a record's number and the number of its
// bucket.
func (b *bucket) first(after uint64) uint64 {
	n := after >> bucketBits
	if b.seqOf(n) <= after {
		n++
	}
	return n
}

// maxNumber is the greatest number with an exact score in a sorted set. The microseconds since 1970 reach it in the
// year 2255.
const maxNumber = uint64(1<<53 - 1)

// microseconds returns a time since 1970 as a score of a sorted set, in microseconds. It rounds down. A score is a floating-point number, exact up to
// maxNumber: a time beyond that becomes the nearest exact one.
func microseconds(sec int64, nanos int) int64 {
	limit := int64(maxNumber) / 1e6
	return max(min(sec, limit), -limit)*1e6 + int64(nanos)/1e3
}
