package persist

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Eraser is a journal able to erase what a record holds of a person. It is optional: find it with [As].
type Eraser interface {
	// Erase replaces the final record at revision rec.Revision by rec, which Record.Erase has made of it. rec has its ID, and fingerprint is its
	// fingerprint, both as they were read. Everything is written as rec has it, the fields frozen by Begin included. Only the ID is written as
	// [ErasedID] of it, under the secret of the journal. Seq and Created stay. Of rec.SendUntil and the stored one the later stays. The record
	// returned has its new ID, and is at its new revision.
	//
	// From then on every method yields the record with its new ID. Begin, Get and Probe find it by the ID that it had, and List by the account
	// and the key that it had: see [Query.Erased]. Whether they find it by its new ID is left open, and so is whether another method does.
	//
	// Durable on return; not cancellable once queued. Atomic: of any number of concurrent Erases and Amends of one revision exactly one
	// succeeds. A read of the journal finds nothing of the erased parts afterwards. The files, logs, copies and backups of an engine may still
	// have them: see docs/security.md.
	// Errors: ErrNotFound, ErrStale if the record has changed or is not final, ErrInvalid for a record that is not Erased or had another
	// fingerprint, and those of Begin but ErrGone.
	Erase(ctx context.Context, rec Record, fingerprint []byte) (Record, error)
}

// erasedText stands in a field that is never empty in a valid record.
const erasedText = "-"

// Unkept stands in the origin and the method of an erased record, in a journal that keeps nothing of it but that its key was used: see Record.KeepText.
const Unkept = erasedText

// erasedPrefix begins each text that stands in the place of an erased key or account.
const erasedPrefix = "erased:"

// ErasedKey returns the text in the place of an erased key: a digest under the secret of the journal. Without the secret nobody can try keys
// against it. The empty key stays empty.
func ErasedKey(secret []byte, key string) string {
	if key == "" {
		return ""
	}
	return erasedPrefix + erasedDigest(secret, "key", key)
}

// erasedAccount returns the text in the place of an erased account. Its parts, the name and the scopes, have a '|' between them, and a scope may be a name,
// '=' and a value. Each part becomes a digest of the account up to its end. So the text of an account is the beginning of the texts of its scoped accounts, as
// the account is of theirs. A scope with a name stays one with a name. The unnamed account stays empty.
func erasedAccount(secret []byte, account string) string {
	var b strings.Builder
	for at := 0; at <= len(account); {
		end := len(account)
		if n := strings.IndexByte(account[at:], '|'); n >= 0 {
			end = at + n
		}
		digest := erasedDigest(secret, "account", account[:end])
		switch part := account[at:end]; {
		case at > 0 && strings.Contains(part, "="):
			b.WriteString("|erased=" + digest)
		case at > 0:
			b.WriteString("|" + erasedPrefix + digest)
		case part != "":
			b.WriteString(erasedPrefix + digest)
		}
		at = end + 1
	}
	return b.String()
}

// ErasedID returns the ID that the record of this ID has once it is erased (everything that no second effect depends on is taken out of it): digests of the
// account and the key, under the secret of the journal. So a search for the ID still finds the record, and nobody reads the account or key in it.
func ErasedID(secret []byte, id ID) ID {
	return ID{Account: erasedAccount(secret, id.Account), Key: ErasedKey(secret, id.Key)}
}

// Erased returns a copy of q with account and key replaced by their digests under the journal's secret. An erased record has these digests in place
// of its account and key. So the result finds the erased records that q found before the erasure.
func (q *Query) Erased(secret []byte) Query {
	erased := *q
	erased.Account, erased.Key = erasedAccount(secret, q.Account), ErasedKey(secret, q.Key)
	return erased
}

// IsOf reports whether r is the record of this ID. It is, too, if it was erased and had the ID before: an erased record has digests in place of its account
// and key, made with the secret of the journal. A journal asks this of a record that it has found by the ID or by its digests.
func (r *Record) IsOf(id ID, secret []byte) bool {
	return r.ID == id || r.Erased && r.ID == ErasedID(secret, id)
}

// erasedDigest returns the HMAC-SHA-256 of a text under the journal's secret, in hexadecimal digits. The kind, "key" or "account", keeps equal texts
// of two kinds apart.
func erasedDigest(secret []byte, kind, text string) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte("oncehttp erased " + kind + "\x00" + text)) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// Erase takes everything out of a final record that no second effect depends on, and sets Erased. Left as it was are Origin, Method, Carrier and the name and
// version of the profile; state, effect, status and all times and counters; and that there was evidence, without its texts. The key as spelled on the wire,
// ReplacedBy and Replaces become [ErasedKey] under the secret of the journal, so that no other operation is taken for this one, or begun in its place. The
// values of Scopes become their digests, which have no secret. The ID stays: the journal writes [ErasedID] in its place. A record that is erased stays as it
// is: a second digest would be of a digest. A sweep calls it, too: see KeepText.
func (r *Record) Erase(secret []byte) {
	if r.Erased {
		return
	}
	r.Effect = r.FinalEffect() // while the answer is there to tell it
	if r.Answer != nil {
		r.Status = r.Answer.Status
	}
	r.Header, r.Body, r.Omitted, r.KeptFields, r.Answer, r.Trace = nil, nil, nil, nil, nil, ""
	r.History, r.Acts, r.Note, r.RedriveRun = nil, nil, "", ""
	r.Credentials, r.Credential, r.Region, r.Content, r.DropAnswer = nil, "", "", "", nil
	r.Target, r.Fingerprint = "/", make([]byte, 32) // in the form of a valid record
	if r.ServerToken && r.Token != "" {             // a record that was sent is not valid without its token
		r.Token = erasedText
	}
	if r.Evidence != nil {
		r.Evidence = &Evidence{Type: erasedText, By: erasedText, Digest: string(make([]byte, 32)), At: r.Evidence.At}
	}
	r.WireKey, r.ReplacedBy, r.Replaces = ErasedKey(secret, r.WireKey), ErasedKey(secret, r.ReplacedBy), ErasedKey(secret, r.Replaces)
	r.Scopes = slices.Clone(r.Scopes)
	for i := range r.Scopes {
		r.Scopes[i].Value = digestOfScope(r.Scopes[i].Value)
	}
	r.LeaseOwner, r.RequestDropped, r.KeepText = "", false, 0 // Swept says that the request is gone, and no text is left to keep
	r.Swept, r.Erased = true, true
}

// ReadyToErase checks the record that a caller gives to Eraser.Erase, in its erased form. It returns ErrInvalid unless the record is final and
// Record.Erase has been called on it. A record whose end somebody still has to be told (Unreported, Owed) cannot be erased.
func (r *Record) ReadyToErase() error {
	if !r.Erased || !r.State.Final() || r.Unreported || r.Owed() {
		return fmt.Errorf("%w: Erase of a record that is not final or not erased, or whose end is owed to somebody", ErrInvalid)
	}
	return r.Validate()
}

// validateErased returns ErrInvalid for an erased record that is not Swept: an erasure takes the answer and the request, too. It does not ask for a
// final state. The copy of a journal begins each record as pending, erased ones too, and ends it afterwards.
func (r *Record) validateErased() error {
	if r.Erased && !r.Swept {
		return fmt.Errorf("%w: erased, and not swept", ErrInvalid)
	}
	return nil
}
