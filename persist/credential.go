package persist

import (
	"fmt"
	"strings"
)

// Credential is a keyed digest of a credential in a request.
type Credential struct {
	// Name is the name of the credential's header or parameter, or of a part of one; never empty, and none twice in a record.
	Name string
	// Digest is a keyed digest of its value, never the value itself; never empty. The part before its colon names the key of
	// the digest.
	Digest string
}

// Owners is the result of CompareOwners: are two requests of one owner, as far as their credentials tell? The zero value is
// the cautious one.
type Owners uint8

// The results of comparing the credentials of two requests.
const (
	// OwnersUnclear: one has credentials and the other none, or they have none of one name to compare.
	OwnersUnclear Owners = iota
	// SameOwner: the credentials of each common name are the same; or neither has any.
	SameOwner
	// OtherOwner: those of some common name differ.
	OtherOwner
)

// CompareOwners tells by the credentials of two requests whether one owner made both. Credentials are compared by name, and only if their digests were made
// with the same key. One difference is enough for OtherOwner. Without a difference between comparable ones, one equal pair is enough for SameOwner, as is a
// pair of requests without any credential. OwnersUnclear: there was nothing to compare.
func CompareOwners(a, b []Credential) Owners {
	owners := OwnersUnclear
	if len(a)+len(b) == 0 {
		owners = SameOwner
	}
	for _, mine := range a {
		for _, theirs := range b {
			switch {
			case mine.Name != theirs.Name || mine.key() != theirs.key():
			case mine.Digest != theirs.Digest:
				return OtherOwner
			default:
				owners = SameOwner
			}
		}
	}
	return owners
}

// key returns the name of the key under which the digest was made: the part of Digest before its colon. Digests under different keys cannot be
// compared.
func (c *Credential) key() string {
	key, _, _ := strings.Cut(c.Digest, ":")
	return key
}

// The bounds of Record.Credentials.
const (
	// CredentialsMax is how many credentials a record names.
	CredentialsMax = 16
	// CredentialNameBytesMax is how long the name of a credential may be.
	CredentialNameBytesMax = 128
	// CredentialDigestBytesMax is how long its digest may be.
	CredentialDigestBytesMax = 128
)

// validateCredentials returns ErrInvalid if the record has too many credentials, one without a name or a digest, one past its bounds, or two of one
// name.
func (r *Record) validateCredentials() error {
	if len(r.Credentials) > CredentialsMax {
		return fmt.Errorf("%w: %d credentials, want at most %d", ErrInvalid, len(r.Credentials), CredentialsMax)
	}
	for i, c := range r.Credentials {
		switch {
		case c.Name == "" || len(c.Name) > CredentialNameBytesMax:
			return fmt.Errorf("%w: a credential's name of %d bytes, want 1 to %d", ErrInvalid, len(c.Name), CredentialNameBytesMax)
		case c.Digest == "" || len(c.Digest) > CredentialDigestBytesMax:
			return fmt.Errorf("%w: a digest of %d bytes for the credential %q, want 1 to %d", ErrInvalid, len(c.Digest), c.Name, CredentialDigestBytesMax)
		}
		for _, other := range r.Credentials[:i] {
			if other.Name == c.Name {
				return fmt.Errorf("%w: two digests for the credential %q", ErrInvalid, c.Name)
			}
		}
	}
	return nil
}
