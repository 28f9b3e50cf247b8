package request

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// Owner identifies the owner of a request, by its credentials. It holds secrets, and is never recorded.
type Owner struct {
	// Asked: it is to be compared. Otherwise the call names an account, or has one owner only.
	Asked bool
	ids   []identity
	// header and target are the recorded ones of the request. Other records may have credentials there.
	header http.Header
	target string
}

// oneOwner is the key of ContextWithOneOwner.
type oneOwner struct{}

// ContextWithOneOwner returns a context for requests of one owner. Their credentials are not compared, however often they
// change. It is for a program working for one account only.
func ContextWithOneOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, oneOwner{}, true)
}

// OneOwner reports whether the program has said by ContextWithOneOwner that all its requests have one owner, so that their credentials are not
// compared.
func OneOwner(ctx context.Context) bool { return ctx.Value(oneOwner{}) != nil }

// Credentials returns keyed digests of the owner's credentials, as a record has them: no more than persist.CredentialsMax, in
// the order of their names. secret is the journal's.
func (o *Owner) Credentials(secret []byte) []persist.Credential {
	ids := o.ids[:min(len(o.ids), persist.CredentialsMax)]
	all := make([]persist.Credential, 0, len(ids))
	for _, id := range ids {
		all = append(all, id.digest(secret))
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Compare compares the owner with the owner of a record, by their credentials: SameOwner, OtherOwner, or OwnersUnclear if there was nothing to compare. A value
// is compared, too, if only one of them takes it for a credential, and the other has it in clear in its headers or target. secret is the journal's, for the
// digests.
func (o *Owner) Compare(rec *persist.Record, secret []byte) persist.Owners {
	mine, theirs := o.Credentials(secret), rec.Credentials
	mine = append(mine, inClear(o.header, o.target, namesOf(theirs, mine), secret)...)
	theirs = append(slices.Clip(theirs), inClear(rec.Header, rec.Target, namesOf(mine, theirs), secret)...)
	return persist.CompareOwners(mine, theirs)
}

// namesOf returns the names of credentials missing among others.
func namesOf(all, others []persist.Credential) (names []string) {
	for _, c := range all {
		if !slices.ContainsFunc(others, func(other persist.Credential) bool { return other.Name == c.Name }) {
			names = append(names, c.Name)
		}
	}
	return names
}

// inClear returns digests of the credentials with these names that a record has in clear, in its headers or target, since its client did not know
// them as credentials.
func inClear(h http.Header, target string, names []string, secret []byte) (all []persist.Credential) {
	for _, name := range names {
		var ids []identity
		if parameter, is := strings.CutPrefix(name, omittedParameter); is {
			ids = queryIdentities(target, func(n string) bool { return strings.EqualFold(n, parameter) })
		} else {
			ids = headerIdentities(h, name)
		}
		for _, id := range ids {
			if c := id.digest(secret); c.Name == name {
				all = append(all, c)
				break
			}
		}
	}
	return all
}

// digest returns the keyed digest of a credential. A name too long for a record becomes a digest, too. Before the colon is a hash of the secret: only
// digests by the same secret can be compared.
func (id identity) digest(secret []byte) persist.Credential {
	name := id.name
	if len(name) > persist.CredentialNameBytesMax {
		sum := sha256.Sum256([]byte(name))
		name = "sha256:" + hex.EncodeToString(sum[:])
	}
	key := sha256.Sum256(append([]byte("oncehttp credentials "), secret...))
	sum := mac(secret, "credential", id.name, id.value)
	return persist.Credential{Name: name, Digest: hex.EncodeToString(key[:4]) + ":" + hex.EncodeToString(sum[:16])}
}

// Reference returns a text for an operation, for an error without the operation's key. Only a holder of the journal finds the
// operation by it.
func Reference(id persist.ID, secret []byte) string {
	return referencePrefix + hex.EncodeToString(mac(secret, "reference", id.Account, id.Key)[:16])
}

const referencePrefix = "ref-"

// IsReference reports whether a text has the form of a Reference: the prefix and 16 bytes in hexadecimal digits.
func IsReference(text string) bool {
	digits, is := strings.CutPrefix(text, referencePrefix)
	b, err := hex.DecodeString(digits)
	return is && err == nil && len(b) == 16
}

// mac returns a digest of texts under a secret. purpose keeps digests for different uses apart.
func mac(secret []byte, purpose string, texts ...string) []byte {
	m := hmac.New(sha256.New, secret)
	message := appendSized(nil, purpose)
	for _, text := range texts {
		message = appendSized(message, text)
	}
	_, _ = m.Write(message) // never fails
	return m.Sum(nil)
}
