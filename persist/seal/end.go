package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// The end of an operation is sealed once more, for the time after a sweep has taken out the text of its record (persist.Record.KeepText): with the text goes
// everything else that is sealed. It is a MAC of 16 bytes, and the encrypted scopes of the operation, if it has any. The MAC covers the digests of account and key under
// the secret of the journal, the state, the effect, the status, the time of the end, and the scopes. Sweeps have no keys, and keep it as it is.

// endMAC is the length of the MAC in bytes.
const endMAC = 16

// endKeys derives the keys for the ends of operations (what is left of a record once a sweep has taken out all that may name a person): that of the MAC, then
// that of the cipher.
func (k *key) endKeys() (both []byte, err error) {
	return hkdf.Expand(sha256.New, k.root, "end", 2*SecretSize)
}

// sealEnd sets SealedEnd of a final sealed record: a proof of its end, to be read after a sweep has taken out the text of the record. rec is the record in
// clear, and left what the sweep will leave of the sealed one. It sets none for a record that is erased already, if the text stays for a reason that the
// journal below cannot see (kept fields), if the sweep would lose the effect (it takes it from the answer's status), or if the secret of the journal cannot be
// read.
func (j *journal) sealEnd(ctx context.Context, sealed, rec *persist.Record) {
	if !rec.State.Final() || rec.Erased || len(rec.KeptFields) > 0 {
		return
	}
	left := *sealed
	left.Strip()
	secret, err := j.Journal.Secret(context.WithoutCancel(ctx))
	if err != nil || left.FinalEffect() != rec.FinalEffect() {
		return
	}
	left.Effect, left.Scopes = left.FinalEffect(), rec.Scopes
	left.Erase(secret) // the scopes become digests
	left.ID = persist.ErasedID(secret, sealed.ID)
	var scopes []byte
	if len(rec.Scopes) > 0 {
		scopes = encodeIntent(persist.Record{Scopes: left.Scopes})
	}
	k := j.s.keys[0] // the key of new writes
	vector := k.endVector(&left, scopes)
	sealed.SealedEnd = string(append(vector, k.endStream(vector, scopes)...))
}

// endVector returns the MAC of the end of an operation: its ID, effect, scopes, state, status and time. It proves the end of a record that has lost
// its text, and is the start value of its encryption.
func (k *key) endVector(rec *persist.Record, scopes []byte) []byte {
	var b []byte
	for _, part := range []string{rec.Account, rec.Key, string(rec.Effect), string(scopes)} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	b = append(b, byte(rec.State))
	b = binary.AppendVarint(b, int64(rec.Status))
	b = binary.AppendVarint(b, rec.Finished.UnixNano())
	return mac(k.end[:SecretSize], b)[:endMAC]
}

// endStream encrypts or decrypts the scopes in the end of a record: twice gives the input again. vector is the result of endVector.
func (k *key) endStream(vector, in []byte) []byte {
	block, err := aes.NewCipher(k.end[SecretSize:])
	if err != nil {
		panic(err) // the size is right
	}
	out := make([]byte, len(in))
	cipher.NewCTR(block, vector).XORKeyStream(out, in)
	return out
}

// isEnd reports whether a sealed (encrypted) record keeps only its end: key and request were erased, and the encrypted end is left. It does not name its key.
func isEnd(sealed *persist.Record) bool { return sealed.Erased && sealed.SealedEnd != "" }

// openEnd returns the record of which only its sealed end is left, once it is proved to be the one sealed for its ID. SealedEnd is a MAC (endMAC bytes), then
// the encrypted scopes. It tries all keys, since nothing names the right one.
// Error: persist.ErrSealed.
func (s *Sealer) openEnd(sealed *persist.Record) (persist.Record, error) {
	if len(sealed.SealedEnd) >= endMAC {
		vector := []byte(sealed.SealedEnd[:endMAC])
		for _, k := range s.keys {
			scopes := k.endStream(vector, []byte(sealed.SealedEnd[endMAC:]))
			if !hmac.Equal(vector, k.endVector(sealed, scopes)) {
				continue
			}
			var was persist.Record
			if len(scopes) > 0 {
				if _, err := codec.DecodeIntent(scopes, &was); err != nil {
					return persist.Record{}, err
				}
			}
			rec := plainEnd(sealed)
			rec.Scopes = was.Scopes
			return rec, nil
		}
	}
	return persist.Record{}, fmt.Errorf("%w: account %q, key %q: what is left of it, without its text, was changed, belongs to another key, or is sealed with a key that was not given; ask for it by its account and key through the journal",
		persist.ErrSealed, sealed.Account, sealed.Key)
}

// plainEnd returns a record that has nothing but its end, without its seal. The key on the wire was sealed with the text, and is not known: Unkept stands in
// its place.
func plainEnd(sealed *persist.Record) persist.Record {
	rec := *sealed
	rec.Carrier, rec.CarrierName, rec.SealedEnd, rec.SealedNeeds, rec.Method, rec.Scopes, rec.Acts = "", "", "", "", persist.Unkept, nil, nil
	if !rec.ServerToken {
		rec.WireKey = persist.Unkept
	}
	return rec
}

// unsealOf decrypts a record found by id. A record of which only its end is left must be that of this ID. The journal below may have it under other names,
// such as digests cut short: the proof of the end is made with the full digests, and so it gets these.
func (j *journal) unsealOf(ctx context.Context, sealed persist.Record, id persist.ID) (persist.Record, error) {
	if sealed.Carrier == persist.CarrierSealed && isEnd(&sealed) {
		secret, err := j.Journal.Secret(ctx)
		if err != nil {
			return persist.Record{}, err
		}
		sealed.ID = persist.ErasedID(secret, j.s.StoredID(id))
	}
	return j.s.Unseal(sealed)
}

// unsealListed is Unseal of a listed record. A journal may know no digests of the account and the key of one that has nothing but its end, if the query does
// not name both. Then its ID is not the one that the seal belongs to, the seal cannot be checked, and the record says so little that nobody acts on it.
func (j *journal) unsealListed(sealed persist.Record) (persist.Record, error) {
	if sealed.Carrier == persist.CarrierSealed && isEnd(&sealed) && !isDigests(sealed.ID) {
		return plainEnd(&sealed), nil
	}
	return j.s.Unseal(sealed)
}

// digestSize is the length of each digest in the ID of an erased record.
const digestSize = 2 * sha256.Size

// isDigests reports whether an ID consists of digests, as persist.ErasedID makes them: then the record was erased. It looks at the lengths of the parts alone.
// The unnamed account stays empty.
func isDigests(id persist.ID) bool {
	full := len(id.Key) >= digestSize
	for i, part := range strings.Split(id.Account, "|") {
		full = full && (len(part) >= digestSize || i == 0 && part == "")
	}
	return full
}
