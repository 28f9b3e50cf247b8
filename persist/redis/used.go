package redis

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/usedkey"
)

// A used key is a record without its text: see persist.Record.KeepText. It has a head alone, with flagUsed, which ends after the format. Behind that are the end of the
// operation, KeepKey, the number of the accounts around its account, a hash of each, and usedkey.Pack. Its id is a hash of account and key. It finds the record, and
// says of which key it is. Whoever names account and key gets the record with their digests, as after an Erase. Others get names made of the id.

// usedHead is the length of the head of a used key without the packed part.
const usedHead = 8 + 8 + tokenSize + 1 + 1 + 1

// isUsed reports whether the entry is that of a used key, the rest of an erased record. Byte 33 of a head has the flags.
func (e *entry) isUsed() bool { return len(e.head) >= usedHead && e.head[33]&flagUsed != 0 }

// pack turns the entry of an erased record into that of a used key: little more than that the key was used. It keeps the beginning of the head, with the mark
// of a used key among the flags (byte 33). wireKey and id are the record's before it was erased.
func (e *entry) pack(rec *persist.Record, wireKey string, id persist.ID) {
	b := bytes.Clone(e.head[:usedHead])
	b[33] |= flagUsed
	b = binary.AppendVarint(b, rec.Finished.Unix())
	b = binary.AppendUvarint(b, uint64(rec.Finished.Nanosecond()))
	b = binary.AppendVarint(b, int64(rec.KeepKey))
	outer := outerHashes(id.Account)
	b = append(binary.AppendUvarint(b, uint64(len(outer)/accountHash)), outer...)
	e.head, e.intent, e.progress = append(b, usedkey.Pack(rec, wireKey, id.Key)...), nil, nil
}

// outerHashes returns the hashes of the accounts around an account, one after the other, each as an id has it: those of "a" and "a|b" for "a|b|c". nil means
// that there is none. They are stored with a used key (the rest of an erased record), so that a listing of an outer account finds it.
func outerHashes(account string) (hashes []byte) {
	for i := range len(account) {
		if account[i] == '|' {
			sum := sha256.Sum256([]byte(account[:i]))
			hashes = append(hashes, sum[:accountHash]...)
		}
	}
	return hashes
}

// unpack decodes the entry of a used key, the rest of an erased record, into an empty record. Its key and account are gone: the record gets names made of its
// id. outer has the hashes of the accounts around its account. The length is checked twice, since n could overflow. Error: persist.ErrCorrupt.
func (e *entry) unpack(b *bucket, rec *persist.Record) (outer []byte, err error) {
	h, packed := e.head, e.head[usedHead:]
	var numbers [4]uint64 // seconds and nanoseconds of the end, KeepKey, the number of outer accounts
	for i := range numbers {
		n, size := binary.Uvarint(packed)
		if size <= 0 {
			return nil, fmt.Errorf("%w: a used key of %d bytes", persist.ErrCorrupt, len(h))
		}
		numbers[i], packed = n, packed[size:]
	}
	n := numbers[3] * accountHash
	if len(e.id) != idSize || numbers[3] > uint64(len(packed)) || n > uint64(len(packed)) {
		return nil, fmt.Errorf("%w: a used key of %d bytes", persist.ErrCorrupt, len(h))
	}
	outer, packed = packed[:n], packed[n:]
	rec.ID, rec.State = usedID(e.id), persist.State(h[32])
	rec.Finished, rec.KeepKey = time.Unix(signed(numbers[0]), int64(numbers[1])).UTC(), time.Duration(signed(numbers[2]))
	if err := usedkey.Unpack(packed, rec); err != nil {
		return nil, err
	}
	rec.Seq, rec.Revision = b.seqOf(binary.BigEndian.Uint64(h)), binary.BigEndian.Uint64(h[8:])
	return outer, nil
}

// signed returns a signed number from n, the unsigned one that binary.Uvarint reads where binary.AppendVarint has written it: its lowest bit is the sign.
func signed(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// usedID returns the ID of a used key (the rest of an erased record), made of its id, its place in the bucket. Its account and key are gone. The unnamed
// account (its hash is that of the empty text) stays unnamed.
func usedID(id string) persist.ID {
	made := persist.ID{Key: usedkey.Prefix + hex.EncodeToString([]byte(id[:keyHash]))}
	if unnamed := sha256.Sum256(nil); id[keyHash:] != string(unnamed[:accountHash]) {
		made.Account = usedkey.Prefix + hex.EncodeToString([]byte(id[keyHash:]))
	}
	return made
}

// nameListed completes a used key (the rest of an erased record) in a listing. It sets the digests of the key and the account that the query names, in place
// of names made of its id, if they belong to the record. A record of an account inside the named one (f.outer has the hashes of those around it) keeps the
// name made of its id behind the digest.
func (l *listing) nameListed(f *found) {
	if l.q.Key != "" && f.id[:keyHash] == hashOf(l.q.Key) {
		usedkey.Name(&f.rec, l.q.Key, l.j.secret)
	}
	if l.q.AllAccounts || l.q.Account == "" {
		return
	}
	sum := sha256.Sum256([]byte(l.q.Account))
	hash, outer := sum[:accountHash], f.outer
	if f.id[keyHash:] == string(hash) {
		f.rec.Account = l.erased.Account
		return
	}
	for ; len(outer) >= accountHash; outer = outer[accountHash:] {
		if bytes.Equal(outer[:accountHash], hash) {
			f.rec.Account = l.erased.Account + "|" + f.rec.Account
			return
		}
	}
}
