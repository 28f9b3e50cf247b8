package bolt

import (
	"encoding/binary"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// An entry in the bucket of intents is
//
//	envelope, length of the intent, intent, progress, sum
//
// The progress is the one written with the entry. It is replaced by an entry in the bucket of progress, if
// there is one. Such an entry is
//
//	envelope, progress, sum
//
// The envelope defines how the rest is to be read; a used key has one of its own, see used.go. The sum is the
// CRC-32C of everything before it, mixed with the Seq and the bucket. So an entry in another's place is
// found out.
const envelopePlain = 1

// inlineMax is the size of the largest body inside its entry. Larger ones go to the bucket of bodies in
// pieces. This costs no copy, and the pages read by every open stay small.
const inlineMax = 16 << 10

// pieceMax is the size of such a piece. It is small enough for freed pages to be used again easily, and
// large enough for few pieces of a 10 MiB body.
const pieceMax = 64 << 10

const sumSize = 4

type kind uint64

const (
	kindIntent kind = iota
	kindProgress
)

// encodeIntent returns the entry of a new record for the bucket of intents, where each record is kept as it was begun. sealSum completes its checksum once the
// Seq is known. The body of a request over inlineMax is left out of it, and so is the body of an answer. A used key, what is left of an erased record, gets a
// short entry of its own form. The size is a bound: one byte for the form, lengths, both parts and the checksum.
func encodeIntent(r *persist.Record) []byte {
	if b := encodeUsed(r); b != nil {
		return b
	}
	size := 1 + 2*binary.MaxVarintLen32 + codec.IntentSize(r, inlineMax) + codec.ProgressSize(r, inlineMax) + sumSize
	if size > scratchMax {
		return appendSum(appendIntent(make([]byte, 0, size), r))
	}
	// Put together on the stack and copied once, at its real size.
	var scratch [scratchMax]byte // the size is a bound; small records are far below it
	return summed(appendIntent(scratch[:0], r))
}

// summed returns a copy of the entry b with its checksum at the end.
func summed(b []byte) []byte {
	return appendSum(append(make([]byte, 0, len(b)+sumSize), b...))
}

// scratchMax is the size of the largest entry put together on the stack.
const scratchMax = 2048

// appendIntent appends the entry for the bucket of intents (records as they were begun), without its sum. b must be empty, with room for the entry. The length
// of the intent stands before the intent, and is known only after it. So room for the length is left, and its unneeded part is cut off at the front.
func appendIntent(b []byte, r *persist.Record) []byte {
	const room = 1 + binary.MaxVarintLen32
	b = codec.AppendIntent(b[:room], r, inlineMax)
	var head [room]byte
	head[0] = envelopePlain
	n := 1 + binary.PutUvarint(head[1:], uint64(len(b)-room))
	b = b[room-n:]
	copy(b, head[:n])
	return codec.AppendProgress(b, r, inlineMax)
}

// encodeProgress returns the changeable part of a record as an entry for the bucket of progress. Its checksum depends on the record's number (Seq), and
// sealSum completes it. The body of an answer longer than inlineMax is left out: it is stored in pieces.
func encodeProgress(r *persist.Record) []byte {
	size := 1 + codec.ProgressSize(r, inlineMax) + sumSize
	if size > scratchMax {
		return appendSum(appendProgress(make([]byte, 0, size), r))
	}
	var scratch [scratchMax]byte
	return summed(appendProgress(scratch[:0], r))
}

// appendProgress appends the changeable part of r, as an entry for the bucket of progress, without its checksum.
func appendProgress(b []byte, r *persist.Record) []byte {
	return codec.AppendProgress(append(b, envelopePlain), r, inlineMax)
}

// appendSum appends the checksum of the entry b. sealSum completes it later, once the record's number is known.
func appendSum(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, codec.Checksum(b))
}

// sealSum completes the checksum at the end of an entry by its place (the record's number Seq, and the bucket), and returns it. So an entry in a wrong place
// is found as damage. The step is apart from the encoding, because a Seq is given under the journal's lock and the checksum is better taken outside of it.
func sealSum(b []byte, k kind, seq uint64) uint32 {
	at := b[len(b)-sumSize:]
	sum := binary.LittleEndian.Uint32(at) ^ sumPlace(k, seq)
	binary.LittleEndian.PutUint32(at, sum)
	return sum
}

// sumPlace returns the place of an entry, its bucket and its record's number (Seq), as a number to be mixed into its checksum: so an entry in a wrong place
// is found as damage.
func sumPlace(k kind, seq uint64) uint32 { return uint32(mix(seq<<1 | uint64(k))) }

// open checks the first byte and the checksum of an entry of this kind for the record with the number seq. The first byte (the envelope) tells the form: an
// ordinary entry, or a used key, what is left of an erased record. open returns the payload between the first byte and the checksum, pointing into b, and the
// checksum as it is compared and kept in memory.
// Errors: persist.ErrCorrupt.
func open(b []byte, k kind, seq uint64) (payload []byte, sum uint32, err error) {
	if len(b) < 1+sumSize {
		return nil, 0, fmt.Errorf("%w: entry %d has %d bytes", persist.ErrCorrupt, seq, len(b))
	}
	b, tail := b[:len(b)-sumSize], b[len(b)-sumSize:]
	sum = binary.LittleEndian.Uint32(tail)
	if codec.Checksum(b)^sumPlace(k, seq) != sum {
		return nil, 0, fmt.Errorf("%w: checksum of entry %d", persist.ErrCorrupt, seq)
	}
	if b[0] != envelopePlain && (b[0] != envelopeUsed || k != kindIntent) {
		return nil, 0, fmt.Errorf("%w: entry %d has envelope %d, which this version does not know", persist.ErrCorrupt, seq, b[0])
	}
	return b[1:], sum, nil
}

// openIntent opens an entry of the bucket of intents, as open does. It returns its two parts: the intent (the record as it was begun) and the progress (the
// changeable part, as written with it). The entry of a used key (the rest of an erased record) has no such parts, and is an error.
// Errors: persist.ErrCorrupt.
func openIntent(b []byte, seq uint64) (intent, progress []byte, sum uint32, err error) {
	payload, sum, err := open(b, kindIntent, seq)
	if err == nil && isUsed(b) {
		err = fmt.Errorf("%w: entry %d is that of a used key", persist.ErrCorrupt, seq)
	}
	if err != nil {
		return nil, nil, 0, err
	}
	n, w := binary.Uvarint(payload)
	if w <= 0 || n > uint64(len(payload)-w) {
		return nil, nil, 0, fmt.Errorf("%w: length of entry %d", persist.ErrCorrupt, seq)
	}
	payload = payload[w:]
	return payload[:n], payload[n:], sum, nil
}

// The parts of a record that may lie in the bucket of bodies.
const (
	partRequest = iota
	partAnswer
)

// pieceKey returns the key of a piece of a body: Seq, part, and the number of the piece. So
// the pieces of a record lie side by side, those of its request first.
func pieceKey(seq uint64, part, n int) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 12), seq)
	return binary.BigEndian.AppendUint32(b, uint32(part)<<31|uint32(n))
}

// seqKey returns a record's number (Seq) as its key in the buckets of intents and of progress: big-endian, so that the keys are ordered by number.
func seqKey(seq uint64) [8]byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seq)
	return b
}
