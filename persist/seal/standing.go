package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// The standing of a record is a sealed copy of its fields in clear that only users with the keys change, beside digests of its other
// changing parts. It is written with each change. So a state, a counter or a part that was changed, removed, or put back alone is
// noticed.
//
// Outside are the fields that journals write by themselves: Revision, Seq, the lease, Drives, SendUntil, DesertedUntil, Unreported,
// KeyTold, OwedFrom, Swept and the times of keeping; and NextAttempt and SealedNeeds, by which a claimer finds a record.
//
// The plaintext is the digest of what a sweep drops, the digest of what it keeps, and the copy. The first outlasts the answer.

// standingOf returns a record with only the fields that stay in clear in a sealed record and that an encrypted proof covers. It does so for a record in clear
// and for a sealed one. Where an answer is still there, its status counts as the record's: a sweep moves it.
func standingOf(rec *persist.Record) persist.Record {
	st := persist.Record{
		State: rec.State, HoldReason: rec.HoldReason, Effect: rec.Effect, Finished: rec.Finished, Status: rec.Status, PlainHTTP: rec.PlainHTTP, Enqueued: rec.Enqueued,
		Told: rec.Told, MaybeSent: rec.MaybeSent, FirstSent: rec.FirstSent, SendBefore: rec.SendBefore, Attempts: rec.Attempts, Sends: rec.Sends,
	}
	if rec.Answer != nil {
		st.Status = rec.Answer.Status
	}
	return st
}

// standing returns, for its encryption, the data that an encrypted part of the record proves: the fields of rec that stay in clear, and digests of the
// encrypted parts in sealed.
func standing(rec, sealed *persist.Record) []byte {
	st := standingOf(rec)
	st.Acts = rec.Acts
	return append(append(passing(sealed), lasting(sealed)...), encodeProgress(st)...)
}

// passing returns the digest of the encrypted parts of a record that a sweep drops: the answer's body and time, and the errors of the history. It is apart
// from lasting, so that a record can still be checked after the sweep.
func passing(sealed *persist.Record) []byte {
	var parts []string
	if sealed.Answer != nil {
		parts = append(parts, "answer", string(sealed.Answer.Body), sealed.Answer.At.UTC().String())
	}
	for _, a := range sealed.History {
		parts = append(parts, "history", a.Error)
	}
	return digest(parts...)
}

// lasting returns the digest of the encrypted changeable parts of a record that a sweep keeps, such as the note and the evidence.
func lasting(sealed *persist.Record) []byte {
	parts := []string{sealed.Token, sealed.Replaces, sealed.ReplacedBy, sealed.RedriveRun, sealed.Credential, sealed.Region, sealed.Note}
	if e := sealed.Evidence; e != nil {
		parts = append(parts, e.Type, e.At.UTC().String())
	}
	return digest(parts...)
}

// digest returns the SHA-256 of texts, each with its length before it, so that no two lists have one digest.
func digest(texts ...string) []byte {
	var all []byte
	for _, text := range texts {
		all = append(binary.AppendUvarint(all, uint64(len(text))), text...)
	}
	sum := sha256.Sum256(all)
	return sum[:]
}

// standing opens the sealed copy of a record's clear fields, and sets rec.Acts from it. The copy begins with two digests of the encrypted parts, of those that
// a sweep drops (passing) and those that stay (lasting). It returns an error of corruption if the record differs from the copy, so that a change without the
// keys is noticed. One change is allowed (given): a person without the keys may abandon an operation, as this proves nothing about its effect.
func (o *opener) standing(sealed, rec *persist.Record) error {
	if len(sealed.Acts) != 1 {
		return o.corrupt(fieldStanding)
	}
	plain, err := o.open(fieldStanding, []byte(sealed.Acts[0].Note))
	if err != nil {
		return err
	}
	if len(plain) < 2*sha256.Size {
		return o.corrupt(fieldStanding)
	}
	var was persist.Record
	if _, err := codec.DecodeProgress(plain[2*sha256.Size:], &was); err != nil {
		return err
	}
	is, then := standingOf(sealed), standingOf(&was)
	given := sealed.State == persist.StateAbandoned && !then.State.Final() // without the keys
	if given {
		then.State, then.HoldReason, then.Finished, then.Status = is.State, is.HoldReason, is.Finished, is.Status
	}
	dropped := sealed.Answer == nil && (given || sealed.Swept && is.State.Final()) // a sweep took the parts of passing
	whole := dropped || bytes.Equal(passing(sealed), plain[:sha256.Size])
	if !whole || !bytes.Equal(lasting(sealed), plain[sha256.Size:2*sha256.Size]) || !bytes.Equal(encodeProgress(is), encodeProgress(then)) {
		return o.corrupt(fieldStanding)
	}
	rec.Acts = was.Acts
	return nil
}
