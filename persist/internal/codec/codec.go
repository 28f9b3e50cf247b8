// Package codec turns a record into bytes and back, for the journals of this
// module.
//
// A record is two parts. The intent is the part frozen by Begin: the identity, the request, how the key travels. The
// progress is the changing part: state, attempts, lease, answer. They are kept apart: so an Update or a Finish never
// writes the request again, however large it is.
//
// A large body can stay outside: the part then holds its length and checksum only. Neither part carries a checksum or
// a version of its own; the journal's frame around it does.
package codec

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/oncehttp/oncehttp/persist"
)

// Outside describes a body kept outside its part. The zero value means a body inside, or none.
type Outside struct {
	Len int    // of the body, in bytes
	Sum uint32 // Checksum of the body
}

// Inline, as the limit of AppendIntent and AppendProgress, keeps every body inside.
const Inline = int(^uint(0) >> 1)

// Checksum returns the CRC-32C of a body, for its Outside.
func Checksum(body []byte) uint32 {
	return crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
}

// The flags of an intent.
const (
	intentGenerated = 1 << iota
	intentHeader    // the header map is not nil
	intentOmitted   // the list is not nil
	intentInside    // the body is not nil and follows
	intentOutside   // the body is outside
	intentSameKey   // the wire key is the key, and is not repeated
	intentProtected
	intentKept        // kept fields follow the omitted names
	intentCredentials // credentials follow those
	intentPauses      // the pauses follow those
	intentReading     // facts, content and scopes follow those
	intentBusiness
	intentAskFirst
	intentTrace // the trace follows the facts
	intentResults
	intentUntilSuccess // the keeping of the request
	intentUntilEnd
	intentErased
	intentDrops // the members to leave out of an answer follow the trace

	intentFlags // one past the last
)

// The flags of a progress, beside the state in the low three bits.
const (
	progressMaybeSent = 8 << iota
	progressPlainHTTP
	progressSwept
	progressAnswer
	progressEnqueued
	progressUnreported
	progressForOperators // status, note and history follow the lease's owner
	progressTexts        // a list of tagged texts follows those
	progressKeyTold
	progressKeeping  // KeepAnswer and KeepKey follow the revision
	progressOwed     // OwedFrom follows those
	progressDeserted // DesertedUntil follows that
	progressTold
	progressActs     // the acts follow the texts
	progressEvidence // the evidence follows the texts
	progressRequestDropped
	progressKeepText // KeepText follows those of progressKeeping

	progressFlags // one past the last
)

// The tags of a progress's texts.
const (
	textToken      = 1
	textReplaces   = 2
	textCredential = 3
	textRegion     = 4
	textNeeds      = 5
	textReplacedBy = 6
	textRun        = 7
	textEnd        = 8
)

// progressState masks the bits of the state.
const progressState = 7

// The flags of the times set in a progress.
const (
	timeFinished = 1 << iota
	timeNextAttempt
	timeSendUntil
	timeFirstSent
	timeSendBefore
	timeLeaseUntil
	timeAnswer

	answerIsOutside // not a time: so PeekProgress need not read the answer
)

// The flags of an answer.
const (
	answerDropped = 1 << iota
	answerReplayed
	answerAlreadyDone
	answerStored
	answerHeader
	answerInside
	answerOutside
	answerLess // the names of dropped members follow the status
)

// fixed bounds, in bytes, the size of the numbers, flags and times of either part, and of the length prefixes of its
// single strings.
const fixed = 256

// flagsOfIntent returns the bits at the head of r's intent (the part of a record frozen by Begin). They tell single values, such as Generated, and the
// optional parts that follow. outside tells that the body is stored elsewhere. Some values need no part of their own, since the flag says it all: intentSameKey
// means that the key on the wire is the record's key.
func flagsOfIntent(r *persist.Record, outside bool) uint64 {
	flags := uint64(0)
	set := func(f uint64, on bool) {
		if on {
			flags |= f
		}
	}
	set(intentGenerated, r.Generated)
	set(intentHeader, r.Header != nil)
	set(intentOmitted, r.Omitted != nil)
	set(intentInside, r.Body != nil && !outside)
	set(intentOutside, outside)
	set(intentSameKey, r.WireKey == r.Key)
	set(intentProtected, r.Protected)
	set(intentKept, len(r.KeptFields) > 0)
	set(intentCredentials, len(r.Credentials) > 0)
	set(intentPauses, r.Pauses != persist.Pauses{})
	set(intentReading, r.Facts != "" || r.Content != "" || len(r.Scopes) > 0)
	set(intentBusiness, r.Business)
	set(intentAskFirst, r.AskFirst)
	set(intentTrace, r.Trace != "")
	set(intentResults, r.Results)
	set(intentUntilSuccess, r.KeepRequest == persist.RequestUntilSuccess)
	set(intentErased, r.Erased)
	set(intentDrops, len(r.DropAnswer) > 0)
	set(intentUntilEnd, r.KeepRequest == persist.RequestUntilEnd)
	return flags
}

// AppendIntent appends r's intent, the part frozen by Begin, to b. A body longer than limit stays outside: only its length and checksum are appended.
// The values for Match, Sweep and an index come first, so that PeekIntent reads no further. An optional part is written if its flag is set. The body comes
// last.
func AppendIntent(b []byte, r *persist.Record, limit int) []byte {
	outside := len(r.Body) > limit
	flags := flagsOfIntent(r, outside)
	b = binary.AppendUvarint(b, flags)
	b = appendLength(b, r.Body, outside)
	b = binary.AppendVarint(b, int64(r.Window))
	b = appendBytes(b, r.Fingerprint)
	b = appendString(b, r.Account)
	b = appendString(b, r.Key)
	b = appendTime(b, r.Created)
	for _, s := range [...]string{r.Origin, r.Method, r.Target, r.Carrier, r.CarrierName, r.Profile, r.ProfileVersion, r.Recipe} {
		b = appendString(b, s)
	}
	if flags&intentSameKey == 0 {
		b = appendString(b, r.WireKey)
	}
	if r.Omitted != nil {
		b = appendStrings(b, r.Omitted)
	}
	if len(r.KeptFields) > 0 {
		b = appendKept(b, r.KeptFields)
	}
	if len(r.Credentials) > 0 {
		b = appendCredentials(b, r.Credentials)
	}
	if flags&intentPauses != 0 {
		b = binary.AppendVarint(b, int64(r.Pauses.Attempts))
		b = binary.AppendVarint(b, int64(r.Pauses.First))
		b = binary.AppendVarint(b, int64(r.Pauses.Most))
	}
	if flags&intentReading != 0 {
		b = appendReading(b, r)
	}
	if r.Trace != "" {
		b = appendString(b, r.Trace)
	}
	if len(r.DropAnswer) > 0 {
		b = appendStrings(b, r.DropAnswer)
	}
	if r.Header != nil {
		b = appendHeader(b, r.Header)
	}
	if !outside {
		b = append(b, r.Body...)
	}
	return b
}

// appendKept appends the number of the kept fields, single values of the request's body, and then each of them. A nil list and an empty one are the
// same.
func appendKept(b []byte, fields []persist.KeptField) []byte {
	b = binary.AppendUvarint(b, uint64(len(fields)))
	for _, f := range fields {
		omitted := byte(0)
		if f.Omitted {
			omitted = 1
		}
		b = appendString(append(appendString(b, f.Pointer), omitted), f.Value)
	}
	return b
}

// appendCredentials appends the number of the credentials (names with digests), and then each of them. A nil list and an empty one are the same.
func appendCredentials(b []byte, all []persist.Credential) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, c := range all {
		b = appendString(appendString(b, c.Name), c.Digest)
	}
	return b
}

// appendReading appends facts (a digest of the profile's rules for reading answers), content (a digest of the request) and scopes (those headers, with their
// values, that tell whose key it is). By these a later request is compared with the record. A nil list of scopes and an empty one are the same.
func appendReading(b []byte, r *persist.Record) []byte {
	b = appendString(appendString(b, r.Facts), r.Content)
	b = binary.AppendUvarint(b, uint64(len(r.Scopes)))
	for _, s := range r.Scopes {
		b = appendString(appendString(b, s.Name), s.Value)
	}
	return b
}

// flagsOfProgress returns the bits at the head of r's progress (the changeable part of a record). They tell its state, single values, such as MaybeSent, and
// the optional parts that follow. The flag of an optional part is set if any of its fields is.
func flagsOfProgress(r *persist.Record) uint64 {
	flags := uint64(r.State) & progressState
	set := func(f uint64, on bool) {
		if on {
			flags |= f
		}
	}
	set(progressMaybeSent, r.MaybeSent)
	set(progressPlainHTTP, r.PlainHTTP)
	set(progressSwept, r.Swept)
	set(progressAnswer, r.Answer != nil)
	set(progressEnqueued, r.Enqueued)
	set(progressUnreported, r.Unreported)
	set(progressKeyTold, r.KeyTold)
	set(progressOwed, !r.OwedFrom.IsZero())
	set(progressDeserted, !r.DesertedUntil.IsZero())
	set(progressEvidence, r.Evidence != nil)
	set(progressKeepText, r.KeepText != 0)
	set(progressKeeping, r.KeepAnswer != 0 || r.KeepKey != 0)
	set(progressForOperators, r.Status != 0 || r.Note != "" || r.History != nil)
	set(progressTexts, r.Token != "" || r.Replaces != "" || r.Credential != "" || r.Region != "" || r.SealedNeeds != "" || r.ReplacedBy != "" || r.RedriveRun != "" || r.SealedEnd != "")
	set(progressTold, r.Told)
	set(progressRequestDropped, r.RequestDropped)
	set(progressActs, len(r.Acts) > 0)
	return flags
}

// AppendProgress appends r's progress, the changeable part, to b. An answer's body longer than limit stays outside: only its length and
// checksum are appended. The values for Match, Sweep and an index come first, so that PeekProgress reads no further. An optional part is written if its flag is
// set, in the order in which DecodeProgress reads it.
func AppendProgress(b []byte, r *persist.Record, limit int) []byte {
	flags := flagsOfProgress(r)
	b = binary.AppendUvarint(b, flags)
	b = binary.AppendUvarint(b, r.Revision)
	if flags&progressKeeping != 0 {
		b = binary.AppendVarint(binary.AppendVarint(b, int64(r.KeepAnswer)), int64(r.KeepKey))
	}
	if flags&progressKeepText != 0 {
		b = binary.AppendVarint(b, int64(r.KeepText))
	}
	if flags&progressOwed != 0 {
		b = appendTime(b, r.OwedFrom)
	}
	if flags&progressDeserted != 0 {
		b = appendTime(b, r.DesertedUntil)
	}
	b = appendTimes(b, r, limit)
	b = appendString(b, string(r.HoldReason))
	b = appendString(b, string(r.Effect))
	b = binary.AppendVarint(b, int64(r.Attempts))
	b = binary.AppendVarint(b, int64(r.Sends))
	b = binary.AppendVarint(b, int64(r.Drives))
	b = appendString(b, r.LeaseOwner)
	if flags&progressForOperators != 0 {
		b = appendForOperators(b, r)
	}
	if flags&progressTexts != 0 {
		b = appendTexts(b, r)
	}
	if len(r.Acts) > 0 {
		b = appendActs(b, r.Acts)
	}
	if r.Evidence != nil {
		b = appendEvidence(b, r.Evidence)
	}
	if r.Answer != nil {
		b = appendAnswer(b, r.Answer, limit)
	}
	return b
}

// appendForOperators appends the fields that only people read: the last status code, a note, and the history of attempts. A nil history and an empty one are
// the same.
func appendForOperators(b []byte, r *persist.Record) []byte {
	b = binary.AppendVarint(b, int64(r.Status))
	b = appendString(b, r.Note)
	b = binary.AppendUvarint(b, uint64(len(r.History)))
	for i := range r.History {
		a := &r.History[i]
		b = appendTime(b, a.At)
		b = binary.AppendVarint(b, int64(a.Took))
		b = binary.AppendVarint(b, int64(a.Status))
		sent := byte(0)
		if a.Sent {
			sent = 1
		}
		b = appendString(append(b, sent), a.Error)
	}
	return b
}

// appendTexts appends the texts that few records have: their number, and each text that is set after its tag. The array is indexed by tag; a tag without a text
// has "".
func appendTexts(b []byte, r *persist.Record) []byte {
	at := len(b)
	b = append(b, 0)
	for tag, text := range [...]string{textToken: r.Token, textReplaces: r.Replaces, textCredential: r.Credential, textRegion: r.Region, textNeeds: r.SealedNeeds,
		textReplacedBy: r.ReplacedBy, textRun: r.RedriveRun, textEnd: r.SealedEnd} {
		if text != "" {
			b[at]++
			b = appendString(append(b, byte(tag)), text)
		}
	}
	return b
}

// appendActs appends the number of the acts of persons on the operation, and then each of them. A nil list and an empty one are the same.
func appendActs(b []byte, acts []persist.Act) []byte {
	b = binary.AppendUvarint(b, uint64(len(acts)))
	for _, a := range acts {
		b = appendString(appendString(appendTime(b, a.At), a.Did), a.Note)
	}
	return b
}
