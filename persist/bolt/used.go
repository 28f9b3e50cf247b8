package bolt

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/usedkey"
)

// A used key is a record without its text (persist.Record.KeepText). Its entry in the bucket of intents is
//
//	envelopeUsed, head, revision, end, KeepKey, digest of the key, digests of the account, usedkey.Pack, sum
//
// head has the state in its low three bits, and flags for the rest. The revision is there only beside a seal, and KeepKey only if it is not zero. The
// digests are those of persist.ErasedID, cut short, one for each part of the account. In a record with a seal they are whole: it is checked by them.
const envelopeUsed = 2

// The flags in the head of a used key.
const (
	usedKeepKey = 8 << iota // KeepKey follows the end
	usedNamed               // the account has a name, and the first digest is that of it
	usedSealed              // the revision follows the head, and the digests are whole
	usedInner               // the number of parts inside the account is counted in these
)

// innerMax is the largest number of parts inside the account of a used key.
const innerMax = 3

const usedState = 7 // the bits of the state

// The lengths of digests in a used key, in bytes: in full, and cut short.
const (
	digestFull   = 32
	digestKey    = 14
	digestPart   = 9
	digestPrefix = usedkey.Prefix
)

// cutDigest returns the text that replaces an erased name, a prefix and a digest, with the digest cut to n bytes. It returns false for any other
// text.
func cutDigest(text string, n int) (string, bool) {
	digits, is := strings.CutPrefix(text, digestPrefix)
	if _, err := hex.DecodeString(digits); !is || err != nil || len(digits) != hex.EncodedLen(digestFull) {
		return "", false
	}
	return text[:len(digestPrefix)+hex.EncodedLen(n)], true
}

// cutAccount returns the account of an erased record with each digest cut short. It has a digest for its name and for each scope, with '|' between them; an
// account without a name begins with '|'. cutAccount returns false if it does not consist of such digests.
func cutAccount(account string) (string, bool) {
	parts := strings.Split(account, "|")
	for i, part := range parts {
		short, is := cutDigest(part, digestPart)
		if !is && (i > 0 || part != "") {
			return "", false
		}
		parts[i] = short
	}
	return strings.Join(parts, "|"), true
}

// cutID returns the ID of an erased record, as persist.ErasedID makes it, in the form that a used key has: with digests that are cut short. It
// returns false if id is none.
func cutID(id persist.ID) (persist.ID, bool) {
	key, isKey := cutDigest(id.Key, digestKey)
	account, isAccount := cutAccount(id.Account)
	return persist.ID{Account: account, Key: key}, isKey && isAccount
}

// cutNames returns the account and the key of an erased record with digests that are cut short. An empty name stays empty.
func cutNames(account, key string) (shortAccount, shortKey string) {
	shortAccount, _ = cutAccount(account)
	shortKey, _ = cutDigest(key, digestKey)
	return shortAccount, shortKey
}

// reduce turns a record that a sweep has just erased into a used key: digests of its key and account, with its state, in a few dozen bytes. wireKey and key
// are those that it had. It returns false, and changes nothing, if the record has more than a used key can hold (it is encoded and decoded to find that out):
// then it is kept as an erased record.
func reduce(rec *persist.Record, wireKey, key string) bool {
	left := persist.Record{ID: rec.ID, Seq: rec.Seq, Revision: rec.Revision, State: rec.State, Finished: time.Unix(0, rec.Finished.UnixNano()).UTC(), KeepKey: rec.KeepKey}
	if rec.SealedEnd == "" { // else the seal is checked by the digests, and they stay whole
		short, is := cutID(rec.ID)
		if !is {
			return false
		}
		left.ID = short
	}
	if !left.Finished.Equal(rec.Finished) { // no int64 holds it
		return false
	}
	if usedkey.Unpack(usedkey.Pack(rec, wireKey, key), &left) != nil || encodeUsed(&left) == nil {
		return false
	}
	*rec = left
	return true
}

// encodeUsed returns the file entry of a used key: the little that stays of an erased record, digests of its key and account with its state. The byte head has
// the state, flags for what follows, and the number of scopes of the account, counted in usedInner. The checksum is not complete. Unkept stands in a record
// for what is not kept. The result is nil if rec has more than such an entry holds; that is found out by a decoding of the result.
func encodeUsed(rec *persist.Record) []byte {
	if !rec.Erased || !rec.State.Final() || rec.Origin != persist.Unkept || rec.Method != persist.Unkept {
		return nil
	}
	parts := strings.Split(rec.Account, "|")
	if len(parts)-1 > innerMax {
		return nil
	}
	head, long := byte(rec.State)|byte(len(parts)-1)*usedInner, rec.SealedEnd != ""
	if rec.KeepKey != 0 {
		head |= usedKeepKey
	}
	if parts[0] != "" {
		head |= usedNamed
	} else {
		parts = parts[1:]
	}
	b := []byte{envelopeUsed, head}
	if long {
		b[1] |= usedSealed
		b = binary.AppendUvarint(b, rec.Revision)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(rec.Finished.UnixNano()))
	if rec.KeepKey != 0 {
		b = binary.AppendVarint(b, int64(rec.KeepKey))
	}
	for _, text := range append([]string{rec.Key}, parts...) {
		digest, err := hex.DecodeString(strings.TrimPrefix(text, digestPrefix))
		if err != nil {
			return nil
		}
		b = append(b, digest...)
	}
	b = appendSum(append(b, usedkey.Pack(rec, rec.WireKey, rec.Key)...))
	var again persist.Record
	if decodeUsed(b[1:len(b)-sumSize], rec.Seq, &again) != nil || !reflect.DeepEqual(&again, rec) {
		return nil
	}
	return b
}

// isUsed reports whether an entry of the bucket of intents is that of a used key, what is left of an erased record.
func isUsed(entry []byte) bool { return len(entry) > 0 && entry[0] == envelopeUsed }

// openUsed checks the entry of a used key, what is left of an erased record, and decodes it into an empty record. sum is its checksum in the form
// that memory keeps. Errors: persist.ErrCorrupt.
func openUsed(entry []byte, seq uint64, rec *persist.Record) (sum uint32, err error) {
	payload, sum, err := open(entry, kindIntent, seq)
	if err != nil {
		return 0, err
	}
	return sum, decodeUsed(payload, seq, rec)
}

// decodeUsed decodes the entry of a used key, what is left of an erased record, into an empty record. b is the entry without envelope and sum. Its first byte,
// head, has the state, flags for what follows, and the number of scopes of the account (inner). With a seal, the digests are whole; else they are cut short.
// Error: persist.ErrCorrupt.
func decodeUsed(b []byte, seq uint64, rec *persist.Record) error {
	damaged := fmt.Errorf("%w: used key %d", persist.ErrCorrupt, seq)
	if len(b) == 0 {
		return damaged
	}
	head, revision := b[0], uint64(0)
	b = b[1:]
	keySize, partSize, size := digestKey, digestPart, 0
	if head&usedSealed != 0 {
		keySize, partSize = digestFull, digestFull
		if revision, size = binary.Uvarint(b); size <= 0 {
			return damaged
		}
		b = b[size:]
	}
	if len(b) < 8 {
		return damaged
	}
	rec.Seq, rec.State, rec.Finished = seq, persist.State(head&usedState), time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC()
	if b = b[8:]; head&usedKeepKey != 0 {
		keep, size := binary.Varint(b)
		if size <= 0 {
			return damaged
		}
		rec.KeepKey, b = time.Duration(keep), b[size:]
	}
	inner := int(head / usedInner)
	named := int(head / usedNamed & 1)
	if len(b) < keySize+(named+inner)*partSize {
		return damaged
	}
	rec.Key, b = digestPrefix+hex.EncodeToString(b[:keySize]), b[keySize:]
	if named > 0 {
		rec.Account, b = digestPrefix+hex.EncodeToString(b[:partSize]), b[partSize:]
	}
	for range inner {
		rec.Account += "|" + digestPrefix + hex.EncodeToString(b[:partSize])
		b = b[partSize:]
	}
	if err := usedkey.Unpack(b, rec); err != nil {
		return fmt.Errorf("used key %d: %w", seq, err)
	}
	if head&usedSealed != 0 {
		rec.Revision = revision
	}
	if rec.Revision == 0 || rec.Revision > math.MaxUint32 {
		return damaged
	}
	return nil
}
