package seal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// A sealed record is a valid record for every journal. Its Target is the sealed identity: the data frozen by Begin and
// kept by a sweep. Its Header has the sealed head of the request: a sweep drops it. Its Body is the sealed body: a sweep drops it, or the
// end of the operation (persist.Record.KeepRequest). Its History is one attempt with the sealed history as its Error. The Type of its Evidence is
// the sealed evidence, and the note of its one Act is the sealed standing. The body of its Answer is the sealed answer; the status beside it is for the tombstone.

// placeholder stands in a field never empty in a valid record.
const placeholder = "sealed"

// Seal returns rec in the form of a journal below [Sealer.Journal], for a record begun without that journal (with it, persist.BeginTx and
// postgres.BeginPgx seal):
//
//	sealed, err := sealer.Seal(record) // of Client.Prepare
//	existing, created, err := postgres.Begin(ctx, tx, sealed)
//
// Existing is sealed, too; see [Sealer.Unseal]. Errors: persist.ErrInvalid.
func (s *Sealer) Seal(rec persist.Record) (persist.Record, error) {
	if err := s.made(); err != nil {
		return persist.Record{}, err
	}
	return s.sealBy(s.keys[0], &rec)
}

// made returns an error for a nil or zero Sealer, which New has not made.
func (s *Sealer) made() error {
	if s == nil || len(s.keys) == 0 {
		return fmt.Errorf("persist/seal: %w: the Sealer is nil or zero; New makes one", persist.ErrInvalid)
	}
	return nil
}

// sealBy returns the record encrypted by one of the keys, for a Begin: its frozen part, its changeable part and its body.
func (s *Sealer) sealBy(k *key, rec *persist.Record) (persist.Record, error) {
	sealed, box, err := s.sealChange(k, rec)
	if err != nil {
		return persist.Record{}, err
	}
	sealed.Fingerprint, sealed.SealedNeeds = k.index(rec.Fingerprint), sealedNeeds(rec.Needs(), k, k)
	box.sealFrozen(&sealed, rec)
	if !rec.RequestGone() {
		sealed.Body = box.seal(fieldRequest, encodeIntent(persist.Record{Body: rec.Body}))
	}
	return sealed, nil
}

// headName is the one name in a sealed record's header: its value is the sealed head.
const headName = "Sealed"

// sealFrozen encrypts the data frozen by Begin into sealed, without the body of the request. The encrypted identity (all such data that a sweep keeps) stands
// in the field Target, and the headers in a header of their own, unless a sweep has dropped them (Swept).
func (b *box) sealFrozen(sealed, rec *persist.Record) {
	sealed.Target = string(b.seal(fieldIdentity, encodeIntent(identityOf(rec))))
	if !rec.Swept {
		head := b.seal(fieldHead, encodeIntent(persist.Record{Header: rec.Header, Omitted: rec.Omitted, Trace: rec.Trace}))
		sealed.Header = http.Header{headName: {string(head)}}
	}
}

// dropRequest adds the data frozen by Begin to an encrypted change that drops the body of the request: the journal below writes these anew then. k is the key
// of the record's Begin. They are encrypted with it, and so the record names it (CarrierName) as before.
func (k *key) dropRequest(sealed, rec *persist.Record) error {
	box, err := k.newBox(sealed.ID, rec.Created)
	if err != nil {
		return fmt.Errorf("persist/seal: key %q: %w", k.id, err)
	}
	sealed.CarrierName = k.id
	box.sealFrozen(sealed, rec)
	return nil
}

// identityOf returns a record with only those fields of rec that Begin freezes and a sweep keeps. They are encrypted as one part.
func identityOf(rec *persist.Record) persist.Record {
	return persist.Record{
		KeepRequest: rec.KeepRequest, Erased: rec.Erased,
		ID: rec.ID, Generated: rec.Generated, Results: rec.Results, Origin: rec.Origin, Method: rec.Method, Target: rec.Target, KeptFields: rec.KeptFields,
		Carrier: rec.Carrier, CarrierName: rec.CarrierName, WireKey: rec.WireKey, Profile: rec.Profile, ProfileVersion: rec.ProfileVersion,
		Window: rec.Window, Fingerprint: rec.Fingerprint, Recipe: rec.Recipe, Created: rec.Created, Protected: rec.Protected, Credentials: rec.Credentials, Pauses: rec.Pauses,
		Business: rec.Business, AskFirst: rec.AskFirst, Facts: rec.Facts, Content: rec.Content, Scopes: rec.Scopes, DropAnswer: rec.DropAnswer,
	}
}

// sealChange encrypts the changing parts of rec with the key k. It leaves out the parts frozen by Begin: an Update or a Finish does not write them again. With
// the box b the caller can encrypt further parts of the same record. The one act of the result has no meaning of its own: it holds the encrypted proof of the
// fields that stay in clear (standing), with the true acts. The caller sets the value in the place of the fingerprint.
func (s *Sealer) sealChange(k *key, rec *persist.Record) (sealed persist.Record, b *box, err error) {
	if err := rec.Validate(); err != nil {
		return persist.Record{}, nil, err
	}
	if rec.Carrier == persist.CarrierSealed {
		return persist.Record{}, nil, fmt.Errorf("%w: %q is sealed already", persist.ErrInvalid, rec.Key)
	}
	sealed = *rec
	if sealed.ID = s.StoredID(rec.ID); rec.Erased {
		sealed.ID = rec.ID // it is one of the journal below
	}
	sealed.Method, sealed.Target = placeholder, "" // a valid record has a method; sealFrozen sets the Target
	if !rec.ServerToken {
		sealed.WireKey = sealed.Key // the true one is in the identity; a valid record needs some
	}
	sealed.Carrier, sealed.CarrierName = persist.CarrierSealed, k.id
	sealed.Header, sealed.Body, sealed.Omitted, sealed.KeptFields, sealed.Credentials, sealed.Trace = nil, nil, nil, nil, nil, ""
	sealed.Profile, sealed.ProfileVersion, sealed.Recipe = "", "", ""
	sealed.Business, sealed.AskFirst, sealed.Facts, sealed.Content, sealed.Scopes, sealed.DropAnswer = false, false, "", "", nil, nil
	if b, err = k.newBox(sealed.ID, rec.Created); err != nil {
		return persist.Record{}, nil, fmt.Errorf("persist/seal: key %q: %w", k.id, err)
	}
	for name, text := range map[field]*string{
		fieldToken: &sealed.Token, fieldReplaces: &sealed.Replaces, fieldCredential: &sealed.Credential, fieldRegion: &sealed.Region, fieldNote: &sealed.Note,
		fieldReplacedBy: &sealed.ReplacedBy, fieldRun: &sealed.RedriveRun,
	} {
		if *text != "" {
			*text = string(b.seal(name, []byte(*text)))
		}
	}
	if e := rec.Evidence; e != nil {
		text := b.seal(fieldEvidence, encodeProgress(persist.Record{Evidence: e}))
		// All of it is in Type; the rest only makes the record valid.
		sealed.Evidence = &persist.Evidence{Type: string(text), By: placeholder, Digest: strings.Repeat("\x00", sha256.Size), At: e.At}
	}
	if len(rec.History) > 0 {
		history := b.seal(fieldHistory, encodeProgress(persist.Record{History: rec.History}))
		sealed.History = []persist.Attempt{{Error: string(history)}}
	}
	if rec.Answer != nil {
		sealed.Answer = &persist.Answer{Status: rec.Answer.Status, BodyDropped: rec.Answer.BodyDropped, At: rec.Answer.At, Body: b.seal(fieldAnswer, encodeProgress(persist.Record{Answer: rec.Answer}))}
	}
	sealed.Acts = []persist.Act{{Note: string(b.seal(fieldStanding, standing(rec, &sealed)))}}
	return sealed, b, nil
}

// Unseal returns the record given to [Sealer.Seal] for sealed, with all its changes since.
//
// Errors: persist.ErrSealed if its key was not given or is another one, or if it is not sealed and Config.AcceptPlain
// is not set; persist.ErrCorrupt if a part of it was changed, cut off, or put there from elsewhere.
func (s *Sealer) Unseal(sealed persist.Record) (persist.Record, error) {
	if err := s.made(); err != nil {
		return persist.Record{}, err
	}
	switch {
	case sealed.Carrier == persist.CarrierSealed && isEnd(&sealed):
		return s.openEnd(&sealed)
	case sealed.Carrier == persist.CarrierSealed:
		return s.unseal(&sealed)
	case s.plain:
		return sealed, nil
	}
	err := fmt.Errorf("%w: %q is not sealed, and the journal was opened with keys; open it without them, or seal it (oncehttp journal compact --seal-key, or AcceptPlain of package persist/seal)",
		persist.ErrSealed, sealed.Key)
	return persist.Record{}, s.unread(&sealed, err)
}

// unread returns an error about an intact record that cannot be decrypted here. The error has the parts of the record in clear, so that a listing can still
// show them.
func (s *Sealer) unread(sealed *persist.Record, err error) error {
	return &persist.UnreadError{Record: *sealed, Needs: s.needsAbove(sealed.Needs().String()), Err: err}
}

// unseal decrypts a record: what Begin has frozen, the request unless it was swept, and the changes since. Errors: persist.ErrSealed without the
// right key, persist.ErrCorrupt for a changed part.
func (s *Sealer) unseal(sealed *persist.Record) (persist.Record, error) {
	o := &opener{s: s, id: sealed.ID, created: sealed.Created}
	rec, err := o.identity(sealed)
	if err == nil && !sealed.Swept {
		err = o.request(sealed, &rec)
	}
	if err == nil {
		err = o.progress(sealed, &rec)
	}
	if errors.Is(err, persist.ErrSealed) {
		err = s.unread(sealed, err)
	}
	if err != nil {
		return persist.Record{}, err
	}
	if err := rec.Validate(); err != nil {
		return persist.Record{}, fmt.Errorf("%w: %w", persist.ErrCorrupt, err)
	}
	return rec, nil
}

// identity returns the sealed record with the parts frozen by Begin in clear again. The fields in clear, by which the journal finds the record, must be those
// that were encrypted. One difference is allowed: a tombstone's key may count as chosen by a caller, although it was generated (Record.Strip).
func (o *opener) identity(sealed *persist.Record) (persist.Record, error) {
	var was persist.Record
	plain, err := o.open(fieldIdentity, []byte(sealed.Target))
	if err != nil {
		return persist.Record{}, err
	}
	if _, err := codec.DecodeIntent(plain, &was); err != nil {
		return persist.Record{}, err
	}
	if stored := o.s.StoredID(was.ID); !was.Erased && stored != o.id && stored.Account == o.id.Account { // only the key differs: another hash
		return persist.Record{}, fmt.Errorf("%w: %q is the hash of a business key under another HashKey than the one that was given", persist.ErrSealed, o.id.Key)
	}
	same := was.Account == o.id.Account && was.Created.Equal(sealed.Created) && was.Window == sealed.Window
	same = same && was.Origin == sealed.Origin && (was.Generated == sealed.Generated || was.Generated && sealed.Swept) && was.ServerToken == sealed.ServerToken && was.Protected == sealed.Protected && was.Pauses == sealed.Pauses && was.Results == sealed.Results && was.KeepRequest == sealed.KeepRequest && was.Erased == sealed.Erased
	if !same || !bytes.Equal(o.box.key.index(was.Fingerprint), sealed.Fingerprint) {
		return persist.Record{}, o.corrupt(fieldIdentity)
	}
	rec := *sealed
	rec.SealedNeeds, rec.SealedEnd = "", ""
	rec.ID, rec.Method, rec.Target, rec.KeptFields = was.ID, was.Method, was.Target, was.KeptFields
	rec.Carrier, rec.CarrierName, rec.WireKey, rec.Profile, rec.ProfileVersion = was.Carrier, was.CarrierName, was.WireKey, was.Profile, was.ProfileVersion
	rec.Fingerprint, rec.Recipe, rec.Credentials = was.Fingerprint, was.Recipe, was.Credentials
	rec.Business, rec.AskFirst, rec.Facts, rec.Content, rec.Scopes, rec.DropAnswer = was.Business, was.AskFirst, was.Facts, was.Content, was.Scopes, was.DropAnswer
	rec.Header, rec.Body, rec.Omitted, rec.Trace = nil, nil, nil, ""
	return rec, nil
}

// request decrypts the headers of the request and, if it is there, its body into rec.
func (o *opener) request(sealed, rec *persist.Record) error {
	head, err := o.openIntent(fieldHead, []byte(sealed.Header.Get(headName)))
	rec.Header, rec.Omitted, rec.Trace = head.Header, head.Omitted, head.Trace
	if err != nil || sealed.RequestDropped {
		return err
	}
	was, err := o.openIntent(fieldRequest, sealed.Body)
	rec.Body = was.Body
	return err
}

// openIntent decrypts a part that was encoded by encodeIntent, and returns the record with the fields in it.
func (o *opener) openIntent(f field, part []byte) (was persist.Record, err error) {
	plain, err := o.open(f, part)
	if err == nil {
		_, err = codec.DecodeIntent(plain, &was)
	}
	return was, err
}

// progress decrypts the fields that may change after Begin into rec, and compares the fields in clear with the encrypted proof of them (standing). The
// evidence is in its field Type, the history in the text of one attempt, the answer in its body.
func (o *opener) progress(sealed, rec *persist.Record) error {
	for _, text := range []struct {
		field  field
		sealed string
		to     *string
	}{
		{fieldToken, sealed.Token, &rec.Token}, {fieldReplaces, sealed.Replaces, &rec.Replaces}, {fieldNote, sealed.Note, &rec.Note},
		{fieldCredential, sealed.Credential, &rec.Credential}, {fieldRegion, sealed.Region, &rec.Region},
		{fieldReplacedBy, sealed.ReplacedBy, &rec.ReplacedBy}, {fieldRun, sealed.RedriveRun, &rec.RedriveRun},
	} {
		if text.sealed == "" {
			continue
		}
		plain, err := o.open(text.field, []byte(text.sealed))
		if err != nil {
			return err
		}
		*text.to = string(plain)
	}
	if sealed.Evidence != nil {
		was, err := o.openProgress(fieldEvidence, []byte(sealed.Evidence.Type))
		if err != nil {
			return err
		}
		rec.Evidence = was.Evidence
	}
	if len(sealed.History) > 0 {
		was, err := o.openProgress(fieldHistory, []byte(sealed.History[0].Error))
		if err != nil {
			return err
		}
		rec.History = was.History
	}
	if sealed.Answer != nil {
		was, err := o.openProgress(fieldAnswer, sealed.Answer.Body)
		if err != nil {
			return err
		}
		if was.Answer == nil || was.Answer.Status != sealed.Answer.Status {
			return o.corrupt(fieldAnswer)
		}
		rec.Answer = was.Answer
	}
	return o.standing(sealed, rec)
}

// openProgress decrypts a part that was encoded by encodeProgress, and returns the record with the fields in it.
func (o *opener) openProgress(f field, part []byte) (was persist.Record, err error) {
	plain, err := o.open(f, part)
	if err == nil {
		_, err = codec.DecodeProgress(plain, &was)
	}
	return was, err
}

// encodeIntent returns the parts of rec frozen by Begin, in the journals' encoding.
func encodeIntent(rec persist.Record) []byte {
	return codec.AppendIntent(make([]byte, 0, codec.IntentSize(&rec, codec.Inline)), &rec, codec.Inline)
}

// encodeProgress returns the changing parts of rec, in the journals' encoding.
func encodeProgress(rec persist.Record) []byte {
	return codec.AppendProgress(make([]byte, 0, codec.ProgressSize(&rec, codec.Inline)), &rec, codec.Inline)
}
