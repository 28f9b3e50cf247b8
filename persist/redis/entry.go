package redis

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// tokenSize is the length of the random token of a write in bytes.
const tokenSize = 16

// The flags of a head.
const (
	flagGenerated = 1 << iota
	flagUnreported
	flagSwept
	flagOwed // Record.Owed, for the index; the time is in the progress
	flagUsed // the head of a used key, which is shorter, see used.go
)

// headSize is the length of a head without the owner of the lease.
const headSize = 8 + 8 + tokenSize + 1 + 1 + 1 + 12 + 12 + 32 + 12 + 12 + 12 + 4

// entry is one record in the form of Redis. The other parts repeat nothing of the head.
type entry struct {
	id       string
	head     []byte // for the scripts: see appendHead
	intent   []byte // codec's, without the body
	progress []byte // codec's, without the body of the answer
	body     []byte // of the request
	answer   []byte // the body of the answer
	outer    []byte // of a used key that was decoded: see unpack
}

// newEntry returns the encoded record at this revision. The entry shares the record's bodies: they must stay unchanged until it is written.
func (b *bucket) newEntry(rec *persist.Record, revision uint64) *entry {
	next := *rec
	next.Revision = revision
	e := &entry{id: idOf(rec.ID), body: rec.Body}
	if rec.Answer != nil {
		e.answer = rec.Answer.Body
	}
	e.head = b.appendHead(make([]byte, 0, headSize+len(rec.LeaseOwner)), &next)
	e.encode(&next)
	return e
}

// appendHead lays the head out as the scripts read it, big-endian: number, revision, token, state, flags, the format of intent and progress, NextAttempt,
// Created, fingerprint, the end of the lease, SendUntil and DesertedUntil in the form of instant, and Drives. The lease's owner is the rest. A new record has
// no number yet: the script of its Begin sets it. A time is seconds since 1970 and nanoseconds.
func (b *bucket) appendHead(head []byte, rec *persist.Record) []byte {
	var token [tokenSize]byte
	_, _ = rand.Read(token[:]) // never fails
	flags := byte(0)
	set := func(flag byte, on bool) {
		if on {
			flags |= flag
		}
	}
	set(flagGenerated, rec.Generated)
	set(flagUnreported, rec.Unreported)
	set(flagSwept, rec.Swept)
	set(flagOwed, rec.Owed())
	head = binary.BigEndian.AppendUint64(head, b.numberOf(rec.Seq))
	head = binary.BigEndian.AppendUint64(head, rec.Revision)
	head = append(head, token[:]...)
	head = append(head, byte(rec.State), flags, persist.Format)
	head = appendTime(head, rec.NextAttempt)
	head = appendTime(head, rec.Created)
	head = append(head, rec.Fingerprint...)
	head = appendTime(head, rec.LeaseUntil)
	head = append(append(head, instant(rec.SendUntil)...), instant(rec.DesertedUntil)...)
	head = binary.BigEndian.AppendUint32(head, uint32(min(rec.Drives, math.MaxUint32)))
	return append(head, rec.LeaseOwner...)
}

// appendTime appends a time in 12 bytes: seconds since 1970, and nanoseconds.
func appendTime(b []byte, t time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.Unix()))
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

// encode sets the intent (the part frozen by Begin) and the progress (the changeable part) of the entry, without the values that its head has: scripts read
// and change the head. The bodies are left out (a size of 0 is the largest inside): they are parts of their own.
func (e *entry) encode(rec *persist.Record) {
	rest := *rec
	rest.Fingerprint, rest.Generated, rest.Created = nil, false, time.Time{}
	rest.Revision, rest.State, rest.Unreported, rest.Swept = 0, 0, false, false
	rest.NextAttempt, rest.LeaseOwner, rest.LeaseUntil, rest.SendUntil, rest.DesertedUntil, rest.Drives = time.Time{}, "", time.Time{}, time.Time{}, time.Time{}, 0
	e.intent = codec.AppendIntent(make([]byte, 0, codec.IntentSize(&rest, 0)), &rest, 0)
	e.progress = codec.AppendProgress(make([]byte, 0, codec.ProgressSize(&rest, 0)), &rest, 0)
}

// token returns the random token of this write, out of the head, where it follows two numbers of 8 bytes (the record's number and revision). After a lost
// answer, the writer finds by it whether the record has its own write.
func (e *entry) token() []byte { return e.head[16 : 16+tokenSize] }

// record decodes the entry, and checks its bodies against their lengths and checksums: intent has those of the request, progress those of the answer. The
// record shares no memory with others.
// Errors: persist.ErrCorrupt; *persist.UnreadError with persist.ErrNewer for a record of a later version.
func (e *entry) record(b *bucket) (persist.Record, error) {
	rec, intent, progress, err := e.withoutBodies(b)
	if err != nil {
		return persist.Record{}, err
	}
	if intent.Len > 0 {
		rec.Body = e.body
	}
	if progress.Len > 0 {
		rec.Answer.Body = e.answer
	}
	if !intact(e.body, intent) || !intact(e.answer, progress) {
		return persist.Record{}, fmt.Errorf("%w: the body kept for account %q, key %q is not what was written", persist.ErrCorrupt, rec.Account, rec.Key)
	}
	if err := rec.Validate(); err != nil {
		return persist.Record{}, fmt.Errorf("%w: account %q, key %q: %v", persist.ErrCorrupt, rec.Account, rec.Key, err)
	}
	return rec, nil
}

// withoutBodies decodes the record, all but the bodies. intent and progress describe these: the lengths and checksums of the request's and of the answer's
// body. A record in the place of another ID is damage. A used key, the rest of an erased record, has a short form of its own and no bodies; e.outer gets the
// hashes of the accounts around its account.
func (e *entry) withoutBodies(b *bucket) (rec persist.Record, intent, progress codec.Outside, err error) {
	if format := e.format(); format != persist.Format {
		return persist.Record{}, intent, progress, e.unread(b, format)
	}
	if e.isUsed() {
		if e.outer, err = e.unpack(b, &rec); err != nil {
			return persist.Record{}, intent, progress, fmt.Errorf("record %x of bucket %d: %w", e.id, b.number, err)
		}
		return rec, intent, progress, nil
	}
	intent, err = codec.DecodeIntent(e.intent, &rec)
	if err == nil {
		progress, err = codec.DecodeProgress(e.progress, &rec)
	}
	if err == nil {
		err = e.readHead(b, &rec)
	}
	if err == nil && !rec.Erased && idOf(rec.ID) != e.id { // the ID of an erased one: see checkID
		err = fmt.Errorf("%w: account %q, key %q is not where it belongs", persist.ErrCorrupt, rec.Account, rec.Key)
	}
	if err != nil {
		return persist.Record{}, intent, progress, fmt.Errorf("record %x of bucket %d: %w", e.id, b.number, err)
	}
	return rec, intent, progress, nil
}

// format returns the format of the encoded parts, byte 34 of the head. A head that is too short counts as this version's format: it is found damaged later. A
// used key, the rest of an erased record, has a shorter head with the format in the same place.
func (e *entry) format() int {
	if len(e.head) < headSize && !e.isUsed() {
		return persist.Format
	}
	return int(e.head[34])
}

// unread returns the error for an entry of another format: this version cannot decode it. The error has the parts in clear (the head, and the beginning of an
// intent, the same in every format), so that a listing can still say where the record belongs. Of a used key, the rest of an erased record, only its number
// and state (byte 32 of the head) are in clear.
func (e *entry) unread(b *bucket, format int) error {
	var clear persist.Record
	if e.isUsed() {
		clear.ID = usedID(e.id)
		clear.Seq, clear.State, clear.Swept, clear.Erased = b.seqOf(e.number()), persist.State(e.head[32]), true, true
		return &persist.UnreadError{Record: clear, Needs: strconv.Itoa(format), Err: fmt.Errorf("%w: account %q, key %q has format %d", persist.ErrNewer, clear.Account, clear.Key, format)}
	}
	if err := e.readHead(b, &clear); err != nil {
		return err
	}
	begin, err := codec.PeekIntent(e.intent)
	if err != nil {
		return err
	}
	clear.ID, clear.Origin = persist.ID{Account: string(begin.Account), Key: string(begin.Key)}, string(begin.Origin)
	return &persist.UnreadError{Record: clear, Needs: e.needsOf(&clear),
		Err: fmt.Errorf("%w: account %q, key %q has format %d", persist.ErrNewer, clear.Account, clear.Key, format)}
}

// needsOf returns the text of the record's needs (the requirements on a client that sends it, such as a credential), by which claims choose. A record of
// another format cannot be read: its needs are the format alone.
func (e *entry) needsOf(rec *persist.Record) string {
	if format := e.format(); format != persist.Format {
		return strconv.Itoa(format)
	}
	return rec.Needs().String()
}

// readHead reads the values of the entry's head into rec, from the places where appendHead has written them. Scripts change the head alone, and so it is newer
// than the rest. A head has a fixed length, with the owner of the lease behind it. b is the entry's bucket: a Seq is made of both numbers. Error:
// persist.ErrCorrupt.
func (e *entry) readHead(b *bucket, rec *persist.Record) error {
	if len(e.head) < headSize {
		return fmt.Errorf("%w: a head of %d bytes", persist.ErrCorrupt, len(e.head))
	}
	h, flags := e.head, e.head[33]
	rec.Seq, rec.Revision = b.seqOf(binary.BigEndian.Uint64(h)), binary.BigEndian.Uint64(h[8:])
	rec.State = persist.State(h[32])
	rec.Generated, rec.Unreported, rec.Swept = flags&flagGenerated != 0, flags&flagUnreported != 0, flags&flagSwept != 0
	rec.NextAttempt, rec.Created = timeAt(h[35:]), timeAt(h[47:])
	rec.Fingerprint = h[59:91:91] // without room behind it: an append must not write into the head
	rec.LeaseUntil, rec.SendUntil, rec.DesertedUntil = timeAt(h[91:]), timeOf(h[103:115]), timeOf(h[115:127])
	rec.Drives, rec.LeaseOwner = int(binary.BigEndian.Uint32(h[127:])), string(h[headSize:])
	return nil
}

// timeAt returns the time in the first 12 bytes of b, as appendTime wrote it.
func timeAt(b []byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint32(b[8:]))).UTC()
}

// intact reports whether a stored body has the length and the checksum that its record says.
func intact(body []byte, want codec.Outside) bool {
	return len(body) == want.Len && (want.Len == 0 || codec.Checksum(body) == want.Sum)
}

// scores returns the time of a final record's end, and of its next possible sweep, as scores of the sorted sets. The second is maxNumber, above all times,
// if no sweep will change the record. Both are empty for an unfinished record.
func scores(rec *persist.Record) (ended, over any) {
	if !rec.State.Final() {
		return "", ""
	}
	ended = microseconds(rec.Finished.Unix(), rec.Finished.Nanosecond())
	at, ever := rec.SweepAt()
	if !ever {
		return ended, int64(maxNumber)
	}
	return ended, microseconds(at.Unix(), at.Nanosecond())
}
