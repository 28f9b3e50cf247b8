// Package usedkey packs a used key: what is left of a record once a sweep has taken out its text (persist.Record.KeepText). That is its effect, its status, some
// counts and times, and the scopes. Its journal keeps the state, the time of the end, KeepKey, and a hash of account and key by which it finds the record.
package usedkey

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// The flags of a packed used key.
const (
	flagQuoted = 1 << iota // the key on the wire was the key in quotes
	flagToken              // it was a token of the server's
	flagScopes             // the scopes follow
	flagHappened
	flagRefused
	flagAbsent
	flagSealed // the rest is Record.SealedEnd
)

// effects are the effects with a flag.
var effects = map[persist.Effect]uint64{persist.EffectHappened: flagHappened, persist.EffectRefused: flagRefused, persist.EffectAbsent: flagAbsent}

// scopeNames are names of headers with a number: one, and their place in the list. Others are spelled. The list only grows at its end.
var scopeNames = []string{"Stripe-Account", "Stripe-Context"}

// The kinds of the value of a packed scope, in the low bits of its first byte. The others are the number of its name.
const (
	scopeEmpty  = iota
	scopeDigest // 32 bytes
	scopeText   // length and text
)

// Prefix begins the text in the place of a name of a used key.
const Prefix = "erased:"

// MayPack reports whether a record, once it is erased, can become a used key: a few bytes that say that its key was used. It cannot if its key was spelled on
// the wire in a way that a used key cannot note, or if its account has scopes (headers that name the owner of the key) with names: a call could not be compared
// with it then.
func MayPack(rec *persist.Record) bool {
	spelled := rec.ServerToken || rec.WireKey == rec.Key || rec.WireKey == quoted(rec.Key)
	return spelled && !strings.Contains(rec.Account, "=") // a place inside an account has the names of its scopes
}

// quoted returns the key in double quotes, as some APIs want it in the header.
func quoted(key string) string { return `"` + key + `"` }

// Pack returns what is left of an erased record in its used key: its effect, status, some counts and times, and the scopes. wireKey
// and key are the record's before it was erased: they tell how its key was spelled on the wire. The time from Begin to end is in seconds, rounded up. A
// sealed (encrypted) record has SealedEnd, (its encrypted end, which has the rest) in place of the revision, that time and the counts.
func Pack(rec *persist.Record, wireKey, key string) []byte {
	flags := effects[rec.Effect]
	switch {
	case rec.ServerToken:
		flags |= flagToken
	case wireKey != key:
		flags |= flagQuoted
	}
	if len(rec.Scopes) > 0 {
		flags |= flagScopes
	}
	if rec.SealedEnd != "" {
		flags |= flagSealed
	}
	b := binary.AppendUvarint(nil, flags)
	b = binary.AppendUvarint(b, packStatus(rec.Status))
	if flags&flagSealed == 0 {
		since := rec.Finished.Sub(rec.Created) + time.Second - 1
		for _, n := range []uint64{rec.Revision, uint64(max(since, 0) / time.Second), uint64(max(rec.Attempts, 0)), uint64(max(rec.Sends, 0))} {
			b = binary.AppendUvarint(b, n)
		}
	}
	if flags&flagScopes != 0 {
		b = appendScopes(b, rec.Scopes)
	}
	return append(b, rec.SealedEnd...)
}

// packStatus returns the number by which a used key has a status. The statuses of a success (200 to 299) become 1 to 100, and so take one byte; others stay,
// and a negative one becomes 0.
func packStatus(status int) uint64 {
	if status >= 200 && status < 300 {
		return uint64(status - 199)
	}
	return uint64(max(status, 0))
}

// unpackStatus returns the status of a number made by packStatus.
func unpackStatus(n uint64) int {
	if n > 0 && n <= 100 {
		return int(n) + 199
	}
	return int(n)
}

// appendScopes appends the number of the scopes (headers that name the owner of a key), and each of them. A well-known name takes a few bits of the first byte
// of its scope (its place in scopeNames, from 1 on; 0: the name follows). The two lowest bits are the kind of its value.
func appendScopes(b []byte, scopes []persist.Scope) []byte {
	b = binary.AppendUvarint(b, uint64(len(scopes)))
	for _, s := range scopes {
		kind, value := packScope(s.Value)
		n := slices.Index(scopeNames, s.Name) + 1
		if b = append(b, byte(n)<<2|kind); n == 0 {
			b = appendText(b, s.Name)
		}
		b = append(b, value...)
	}
	return b
}

// packScope returns the kind of a scope's value, and its bytes. A digest is packed as its 32 bytes, unless its text has another spelling than lower-case
// hexadecimal: then it must stay a text, to come back as it was.
func packScope(value string) (kind byte, packed []byte) {
	hash, isDigest := strings.CutPrefix(value, "sha256:")
	sum, err := hex.DecodeString(hash)
	switch {
	case value == "":
		return scopeEmpty, nil
	case isDigest && err == nil && len(sum) == sha256.Size && hex.EncodeToString(sum) == hash:
		return scopeDigest, sum
	}
	return scopeText, appendText(nil, value)
}

// appendText appends the length of s as a varint, then s.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// unpacker reads a packed used key. After a read past its end it is bad.
type unpacker struct {
	b   []byte
	bad bool
}

// number reads a number that binary.AppendUvarint has written; 0 and bad if there is none.
func (u *unpacker) number() uint64 {
	n, size := binary.Uvarint(u.b)
	if size <= 0 {
		u.bad = true
		return 0
	}
	u.b = u.b[size:]
	return n
}

// take returns the next n bytes of a packed record, and goes on behind them; nil if there are fewer, and bad is set.
func (u *unpacker) take(n uint64) []byte {
	if uint64(len(u.b)) < n {
		u.bad = true
		return nil
	}
	taken := u.b[:n]
	u.b = u.b[n:]
	return taken
}

// scope reads a scope, as appendScopes writes it. It sets bad if there is none, or if its name or kind is unknown.
func (u *unpacker) scope() (s persist.Scope) {
	head := u.take(1)
	if u.bad {
		return s
	}
	switch n := int(head[0] >> 2); {
	case n == 0:
		s.Name = string(u.take(u.number()))
	case n <= len(scopeNames):
		s.Name = scopeNames[n-1]
	default:
		u.bad = true
	}
	switch head[0] & 3 {
	case scopeEmpty:
	case scopeDigest:
		s.Value = "sha256:" + hex.EncodeToString(u.take(sha256.Size))
	case scopeText:
		s.Value = string(u.take(u.number()))
	default:
		u.bad = true
	}
	return s
}

// Unpack decodes a packed used key. Before the call rec has the key in the place of the erased one, State, and Finished; everything else of it that is not zero
// in a used key is set, but for Account, Seq and KeepKey. Method, origin and target get values that stand for "not kept", so that the record is valid.
// Error: persist.ErrCorrupt.
func Unpack(b []byte, rec *persist.Record) error {
	u := unpacker{b: b}
	flags := u.number()
	rec.Status = unpackStatus(u.number())
	if flags&flagSealed == 0 { // a sealed end is packed without these
		rec.Revision, rec.Created = u.number(), rec.Finished.Add(-time.Duration(u.number())*time.Second)
		rec.Attempts, rec.Sends = int(u.number()), int(u.number())
	}
	if flags&flagScopes != 0 {
		for range min(u.number(), persist.ScopesMax+1) { // a damaged number must not make a long list
			rec.Scopes = append(rec.Scopes, u.scope())
		}
	}
	if flags&flagSealed != 0 {
		rec.Carrier, rec.SealedEnd = persist.CarrierSealed, string(u.take(uint64(len(u.b))))
	}
	if u.bad || len(u.b) > 0 {
		return fmt.Errorf("%w: a used key of %d bytes cannot be read", persist.ErrCorrupt, len(b))
	}
	for effect, flag := range effects {
		if flags&flag != 0 {
			rec.Effect = effect
		}
	}
	rec.Swept, rec.Erased = true, true
	rec.Method, rec.Origin, rec.Target, rec.Fingerprint = persist.Unkept, persist.Unkept, "/", make([]byte, sha256.Size)
	switch rec.WireKey = rec.Key; {
	case flags&flagToken != 0:
		rec.ServerToken, rec.WireKey, rec.Token = true, "", persist.Unkept
	case flags&flagQuoted != 0:
		rec.WireKey = quoted(rec.Key)
	}
	return nil
}

// Name gives the record of a used key the digests of its key, as an erased record has them, in place of names made of its row. The caller knows the key: it
// has found the record by it.
func Name(rec *persist.Record, key string, secret []byte) {
	spelled := key
	if rec.WireKey != rec.Key {
		spelled = quoted(key)
	}
	if rec.Key = persist.ErasedKey(secret, key); !rec.ServerToken {
		rec.WireKey = persist.ErasedKey(secret, spelled)
	}
}
